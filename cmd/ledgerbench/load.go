package main

// loadCommand is helper B1's.
type loadCommand struct{}

func (c *loadCommand) Run() error { return nil }
