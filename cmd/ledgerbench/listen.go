package main

// listenCommand is helper B2's.
type listenCommand struct{}

func (c *listenCommand) Run() error { return nil }
