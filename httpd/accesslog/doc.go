// Package accesslog writes a line for each answered request to a file.
//
// # Nouns
//
// A [Log] is one file that is appended to. An [Entry] is one answered request; its line is an object of JSON:
//
//	{"time":"2026-02-05T12:34:56.789Z","client":"192.0.2.1","method":"GET","path":"/api/health","status":200,"bytes":75,"duration_us":41}
//
// It has no query, and of the header only what names the request or its trace: all else may be what the client keeps secret. The end of
// a WebSocket is a line of its own.
//
// # Ownership
//
// Handlers append lines to a buffer in memory, and never wait for the disk. The goroutine that runs [Log.Run] owns the file: it writes
// what has gathered ten times a second, opens the file anew when it is asked to, and closes it at its end.
//
// # Order and loss
//
// Lines are nearly in the order in which their answers were complete. Each is written whole, or dropped and counted: what a disk or a pipe does not take
// waits in the buffer and is tried again, and what comes while the buffer is full is dropped. Lines of the last tenth of a second are lost when the
// process is killed, and nothing is synced.
package accesslog
