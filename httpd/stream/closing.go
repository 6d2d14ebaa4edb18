package stream

// reason says for operators why a connection ended. Each is one value of a metric's label.
type reason uint8

const (
	reasonClient   reason = iota // the client closed it
	reasonGone                   // the socket broke or ended without a close frame
	reasonShutdown               // 1001
	reasonProtocol               // 1002
	reasonBinary                 // 1003
	reasonUTF8                   // 1007
	reasonPolicy                 // 1008: too many messages or keys
	reasonSilent                 // 1008: nothing heard for Config.SilenceTimeout
	reasonTooBig                 // 1009
	reasonInternal               // 1011
	reasonMemory                 // 1013
	reasonSlow                   // 4008
	reasonStalled                // reset: the socket took no byte for Config.WriteTimeout
	reasons
)

var reasonNames = [reasons]string{
	"client", "gone", "shutdown", "protocol", "binary", "utf8", "policy",
	"silent", "too_big", "internal", "memory", "slow_consumer", "stalled",
}

// Close codes of RFC 6455, section 7.4.1, and one of our own.
const (
	closeNormal      = 1000
	closeGoingAway   = 1001
	closeProtocol    = 1002
	closeUnsupported = 1003
	closeBadUTF8     = 1007
	closePolicy      = 1008
	closeTooBig      = 1009
	closeInternal    = 1011
	closeTryAgain    = 1013
	closeSlow        = 4008
)

// closing says how a connection ends. As an error it travels from where a rule was broken
// to the outbox.
type closing struct {
	reason reason
	code   uint16 // 0: there is nobody to send a close frame to
	text   string
}

// atOnce reports whether what waits is not written any more: nobody reads it, or not fast
// enough.
func (c *closing) atOnce() bool { return c.code == 0 || c.reason == reasonSlow }

func (c *closing) Error() string { return c.text }

var (
	endGone     = closing{reason: reasonGone}
	endShutdown = closing{reasonShutdown, closeGoingAway, "the server is shutting down"}
	endBinary   = closing{reasonBinary, closeUnsupported, "only text messages are understood"}
	endUTF8     = closing{reasonUTF8, closeBadUTF8, "text must be valid UTF-8"}
	endRate     = closing{reasonPolicy, closePolicy, "too many messages"}
	endKeys     = closing{reasonPolicy, closePolicy, "more than 10000 keys"}
	endSilent   = closing{reasonSilent, closePolicy, "no sign of life"}
	endTooBig   = closing{reasonTooBig, closeTooBig, "a message may have at most 65536 bytes"}
	endInternal = closing{reasonInternal, closeInternal, "internal error"}
	endMemory   = closing{reasonMemory, closeTryAgain, "memory runs short, try again"}
	// The writer completes the text of endSlow with the last seq it sent.
	endSlow = closing{reasonSlow, closeSlow, "slow consumer"}
)

// protocolError is a breach of RFC 6455. Its text is fixed and repeats nothing received.
func protocolError(text string) *closing {
	return &closing{reasonProtocol, closeProtocol, text}
}
