"""Every theory of extensive width."""

from checks import checks

from orderparam.systems.extensive_width import (
    HierarchicalTeacher,
    QuadraticTeacher,
    WeightedTeacher,
    WidthLimitedStudent,
)

STEEP = HierarchicalTeacher(40, 20, 0.8, 0.05, 2000.0)
SYSTEMS = [
    STEEP,
    HierarchicalTeacher(40, 20, 0.2, 0.05, 2000.0),
    WeightedTeacher(40, [1.0, -0.7, 0.3, 0.3], 0.05, 2000.0),
    WidthLimitedStudent(STEEP, 5.0),
    QuadraticTeacher(12, 6, 0.5, 300.0),
]
globals().update(
    checks(
        "extensive_width",
        SYSTEMS,
        fewer={"staircase": 3, "fluctuating_states": 5},
        options={"fluctuating_states": {"data_sets": 50}},
        infinite=("begin", "end", "first_order_ratio"),
    )
)
