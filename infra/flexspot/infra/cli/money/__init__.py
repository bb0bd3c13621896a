"""Commands on money: what capacity costs before it is used, and who pays for it afterwards."""
