"""The version of the distribution."""

VERSION = "0.1.0"
