package httpdtest

import (
	"testing"

	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"
)

// Main runs the tests of a package, which leave no goroutine behind but those of fasthttp: it keeps its clock for the life of the process, and lets the
// cleaner of a stopped worker pool sleep to its end.
func Main(m *testing.M, others ...goleak.Option) {
	new(fasthttp.ResponseHeader).Header() // starts the clock, which outlives any bubble of testing/synctest
	goleak.VerifyTestMain(m, append(others,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
	)...)
}
