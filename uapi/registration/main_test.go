package registration_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/rdmashim/rdmashim/tests/leak"
	"github.com/rdmashim/rdmashim/uapi/registration"
)

// asPeer in the environment makes the test binary a peer in a process of its
// own.
const asPeer = "REGISTRATION_TEST_PEER"

func TestMain(m *testing.M) {
	if os.Getenv(asPeer) != "" {
		bePeer()
		return
	}
	leak.Main(m)
}

// bePeer opens each transport, prints where it listens, a line each, and echoes
// streams. It ends with its standard input.
func bePeer() {
	for kind, transport := range transports {
		r, err := registration.Open(context.Background(), secure(transport))
		if err == nil {
			var l *registration.Listener
			if l, err = r.Listen(context.Background(), 0); err == nil {
				fmt.Println(kind, l.Addr())
				go echo(l)
			}
		}
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// echo echoes all streams of all connections.
func echo(l *registration.Listener) {
	for {
		c, err := l.Accept(context.Background())
		if err != nil {
			return
		}
		go func() {
			for {
				s, err := c.AcceptStream(context.Background())
				if err != nil {
					return
				}
				go func() {
					_, _ = io.Copy(s, s)
					_ = s.Close()
				}()
			}
		}()
	}
}
