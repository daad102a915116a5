//! The virtual-time lab: starts User-Mode Linux and is its clock
