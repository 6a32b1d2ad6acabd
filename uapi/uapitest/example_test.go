package uapitest_test

import (
	"fmt"
	"testing"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// A test of a program that sends messages, over a link that loses one packet
// in a hundred.
func ExamplePair() {
	test := func(t uapitest.T) { // func TestMessage(t *testing.T)
		a, b := uapitest.Pair(t, "loss=1%&seed=7")
		x, y := uapitest.Connect(t, a, b)

		y.Must(y.PostRecv(y.QP, y.MR, 0, 100))
		n := copy(x.Buf, "hello, peer")
		x.Must(x.PostSend(x.QP, x.MR, uint64(n)))

		got := y.Next(1)[0]
		fmt.Printf("%s: %q\n", got.Opcode, y.Buf[:got.ByteLen])
		fmt.Println(x.Next(1)[0].Opcode)
	}
	new(fakeT).run(test)
	// Output:
	// RECV: "hello, peer"
	// SEND
}

// A test of a server that listens: the listener is the program's, and the
// client is the test's.
func ExampleListen() {
	test := func(t uapitest.T) {
		device, l := uapitest.Listen(t, "loss=1%&seed=7")
		x, y := uapitest.Dial(t, device, l)

		copy(x.Buf, "by address and port")
		x.Must(x.Write(x.QP, uapi.SGE{MR: x.MR, Length: 19}, x.Peer))
		x.Next(1)
		fmt.Printf("%s\n", y.Buf[:19])
	}
	new(fakeT).run(test)
	// Output:
	// by address and port
}

var _ uapitest.T = (*testing.T)(nil)
