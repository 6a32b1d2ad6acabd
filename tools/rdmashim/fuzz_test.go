package main

import (
	"bytes"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sentConn is a connection on which everything has arrived.
type sentConn struct {
	net.Conn
	*bytes.Reader
}

func (c sentConn) Read(b []byte) (int, error)    { return c.Reader.Read(b) }
func (sentConn) SetReadDeadline(time.Time) error { return nil }

// FuzzControl gives the control connection whatever a peer may send: messages or
// an error, never more memory than a message may have.
func FuzzControl(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x29" + `{"version":1,"name":"file","bytes":12345}`))
	f.Add([]byte("\x00\x00\x00\x0b" + `{"ok":true}` + "\x00\x00\x00\x02{}"))
	f.Add([]byte("\xff\xff\xff\xff"))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		c := &control{sentConn{Reader: bytes.NewReader(sent)}}
		for _, v := range []any{new(hello), new(welcome), new(goodbye), new(farewell)} {
			if err := c.receive(v, time.Second); err != nil {
				require.NotEmpty(t, err.Error())
				require.NotContains(t, err.Error(), "\n")
			}
		}
	})
}

// FuzzArguments reads any command line in iproute2's words: what it means, or
// wrong usage.
func FuzzArguments(f *testing.F) {
	f.Add("-j res show qp link rxe0/1 lqpn 1,4-7 state RTS")
	f.Add("link add rxe0 type rxe netdev eth0")
	f.Add("dev show dev rxe0 pid 99999999999999999999")
	f.Add("")
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Fields(line)
		for _, shorten := range []bool{false, true} {
			require.GreaterOrEqual(t, len(rdmaArgs(args, shorten)), len(args))
		}
		known := filterWords("lqpn# pid# state type comm")
		_, list, err := parseFilters("resource show", args, known)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		for _, x := range list {
			_ = x.match("17")
			_ = x.match("RTS")
		}
	})
}
