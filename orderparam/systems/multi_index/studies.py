"""The named figures of weak learnability."""

from orderparam.systems.multi_index.studies_targets import leap_staircase, weak_learnability_table
from orderparam.systems.multi_index.studies_times import sgd_batch_size, sgd_data_reuse, sgd_exit_times

__all__ = ["leap_staircase", "sgd_batch_size", "sgd_data_reuse", "sgd_exit_times", "weak_learnability_table"]
