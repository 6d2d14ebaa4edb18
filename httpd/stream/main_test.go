package stream

import (
	"testing"

	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"
)

// fasthttp keeps its clock for the life of the process, and lets the cleaner of a stopped
// worker pool sleep to its end.
var keptByFasthttp = []goleak.Option{
	goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
	goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
}

// TestMain fails if anything still runs after the tests. What runs after each of them is
// looked at where its node stops.
func TestMain(m *testing.M) {
	new(fasthttp.ResponseHeader).Header() // starts fasthttp's clock, which outlives any bubble of testing/synctest
	goleak.VerifyTestMain(m, keptByFasthttp...)
}
