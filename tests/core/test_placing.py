"""Placing names on partitions, against values of Java's own String.hashCode."""

import pytest

from semel.core.placing import java_hash, partition_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("etl-payments", -232486563),
        ("polygenelubricants", -(2**31)),
        ("ü€", 16176),
        ("😀", 1772899),
    ],
)
def test_hashes_are_javas(text, value):
    assert java_hash(text) == value


def test_a_negative_hash_is_turned_positive_not_masked():
    assert partition_of("etl-payments", 50) == 232486563 % 50


def test_the_smallest_integer_counts_as_zero():
    assert partition_of("polygenelubricants", 50) == 0
