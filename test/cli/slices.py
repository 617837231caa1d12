# SPDX-License-Identifier: MIT
"""What the tests of vigil trace check of every file that it writes."""


def ns(us):
    return round(us * 1000)


def check_nested(lanes):
    """The slices of a lane, (begin, end, event), are contained in each other, or one after the other."""
    for lane in lanes:
        lane.sort(key=lambda s: (s[0], -s[1]))
        ends = []
        for begin, end, event in lane:
            while ends and ends[-1] <= begin:
                ends.pop()
            assert not ends or end <= ends[-1], event
            ends.append(end)
