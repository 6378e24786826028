"""Every theory of committees."""

from checks import checks

from orderparam.systems.committee import Committee, LargeCommittee

SYSTEMS = [
    Committee(1.5),
    Committee(1.2, 2, "majority", "binary"),
    Committee(3.0, 2, "parity"),
    LargeCommittee(8.0),
]
globals().update(
    checks(
        "committee",
        SYSTEMS,
        fewer={"specialisation": 2, "information_transition": 1, "state_evolution": 8},
    )
)
