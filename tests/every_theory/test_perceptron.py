"""Every theory of the perceptron."""

from checks import checks

from orderparam.systems.perceptron import BatchPerceptron, OnlinePerceptron, ThermalPerceptron

SYSTEMS = [
    ThermalPerceptron(1.1, 0.4),
    BatchPerceptron(2.0, "maximal stability"),
    OnlinePerceptron(2.0, "rosenblatt", 0.5),
]
globals().update(
    checks(
        "perceptron",
        SYSTEMS,
        fewer={"binary_transitions": 10, "high_temperature_transitions": 2, "online_rule": 40},
        infinite=("freezing",),
        sloping={"high_temperature": [ThermalPerceptron(8.0, 4.0)]},
    )
)
