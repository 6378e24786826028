"""Every theory of in-context learning."""

from checks import checks

from orderparam.systems.in_context import LinearAttention, StructuredTasks

SYSTEMS = [
    LinearAttention(1.5, 0.7, 2.0, 0.2, 0.1, 2.0, 0.3, input_dim=8),
    StructuredTasks(
        1.5,
        0.7,
        0.6,
        0.2,
        0.1,
        input_dim=8,
        task_variances=[1.5, 0.5],
        test_variances=[0.4, 1.2],
    ),
]
globals().update(checks("in_context", SYSTEMS))
