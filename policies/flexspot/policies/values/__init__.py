"""What all rooms of the rules use: values that may be unknown, fields of an object, findings. It knows no kind of object."""
