"""The `flexspot` command line. Commands parse arguments, call other modules and print. Other modules decide what is printed."""
