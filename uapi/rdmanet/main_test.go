package rdmanet_test

import (
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/rdmashim/rdmashim/tests/leak"
	"github.com/rdmashim/rdmashim/uapi/rdmanet"
)

// asPeer in the environment makes the test binary a peer in a process of its
// own.
const asPeer = "RDMANET_TEST_PEER"

func TestMain(m *testing.M) {
	if os.Getenv(asPeer) != "" {
		servePeer()
		return
	}
	leak.Main(m)
}

// servePeer echoes a byte of each connection and does nothing more with it. It
// ends with its standard input.
func servePeer() {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	// An address of its own: of two processes that open one at the same moment,
	// one may fail.
	own := fmt.Sprintf("127.101.%d.%d:0", os.Getpid()>>8&0xff, os.Getpid()&0xff)
	l, err := rdmanet.Listen(own, rdmanet.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(l.Addr())
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = io.CopyN(c, c, 1)
	}
}
