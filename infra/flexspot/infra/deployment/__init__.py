"""How a stack is deployed: pieces, credentials, what interruptions and hands left."""
