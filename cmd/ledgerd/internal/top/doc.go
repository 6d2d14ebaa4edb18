// Package top is a live view of a node in a terminal. A [node] asks for the metrics as often as the node's budget allows, a
// [sample] is what they said at one moment, and a [view] turns samples into lines of text. [Run] owns the view: it takes
// samples, keys and the size of the terminal as they come, and draws.
package top
