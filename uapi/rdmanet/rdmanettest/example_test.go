package rdmanettest_test

import (
	"fmt"
	"io"
	"slices"

	"github.com/rdmashim/rdmashim/uapi/rdmanet"
	"github.com/rdmashim/rdmashim/uapi/rdmanet/rdmanettest"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// A test of a program that answers on a net.Conn, over a link that loses one
// packet in a hundred.
func ExamplePipe() {
	greet := func(c io.ReadWriteCloser) { // the program
		name, _ := io.ReadAll(c)
		fmt.Fprintf(c, "hello, %s", name)
		c.Close()
	}
	test := func(t uapitest.T) { // func TestGreet(t *testing.T)
		x, y := rdmanettest.Pipe(t, "loss=1%&seed=7", rdmanet.Config{})
		go greet(y)
		fmt.Fprint(x, "peer")
		x.CloseWrite()
		greeting, err := io.ReadAll(x)
		fmt.Println(string(greeting), err)
	}
	new(printT).run(test)
	// Output: hello, peer <nil>
}

// printT is a test that prints what goes wrong.
type printT struct{ cleanups []func() }

func (t *printT) run(test func(t uapitest.T)) {
	test(t)
	for _, f := range slices.Backward(t.cleanups) {
		f()
	}
}

func (t *printT) Helper()                           {}
func (t *printT) Cleanup(f func())                  { t.cleanups = append(t.cleanups, f) }
func (t *printT) Logf(string, ...any)               {}
func (t *printT) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
func (t *printT) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
