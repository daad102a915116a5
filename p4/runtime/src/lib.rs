//! P4Runtime messages and services, generated from the official Python package
