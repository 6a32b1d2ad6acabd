package peer

import (
	"bytes"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/uapi"
)

// deadlines is a connection that notes what deadlines it was given last.
type deadlines struct {
	net.Conn
	read, write time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error  { d.read = t; return nil }
func (d *deadlines) SetWriteDeadline(t time.Time) error { d.write = t; return nil }

// TestDeadlines: those of a message end with it, since introductions
// pass over the same connection.
func TestDeadlines(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	d := &deadlines{Conn: a}
	go func() { _, _ = io.Copy(b, b) }()
	ctl := NewConn(d)
	received := make(chan error, 1)
	go func() { received <- ctl.Receive(new(Welcome), time.Hour) }()
	require.NoError(t, ctl.Send(Welcome{PID: 3}))
	require.NoError(t, <-received)
	require.Zero(t, d.read)
	require.Zero(t, d.write)
}

// sentConn is a connection on which everything has arrived.
type sentConn struct {
	net.Conn
	*bytes.Reader
}

func (c sentConn) Read(b []byte) (int, error)    { return c.Reader.Read(b) }
func (sentConn) SetReadDeadline(time.Time) error { return nil }

// FuzzConn gives the control connection whatever a peer may send: messages or
// an error, never more memory than a message may have.
func FuzzConn(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x29" + `{"version":1,"name":"file","bytes":12345}`))
	f.Add([]byte("\x00\x00\x00\x0b" + `{"ok":true}` + "\x00\x00\x00\x02{}"))
	f.Add([]byte("\xff\xff\xff\xff"))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		c := &Conn{sentConn{Reader: bytes.NewReader(sent)}}
		for _, v := range []any{new(Hello), new(Welcome), new(any)} {
			if err := c.Receive(v, time.Second); err != nil {
				require.NotEmpty(t, err.Error())
				require.NotContains(t, err.Error(), "\n")
			}
		}
	})
}

// TestTwoDevices: a capture is the client's, unless {pid} gives each its own.
func TestTwoDevices(t *testing.T) {
	for base, server := range map[string]string{
		"soft?pcap=a&seed=1":              "soft?seed=1",
		"soft?pcap={device}":              "soft",
		"soft?pcap=a-{pid}&seed=1":        "soft?pcap=a-{pid}&seed=1",
		"soft:10.0.0.1?pcap=a":            "soft:10.0.0.1",
		"soft:10.0.0.1?pcap={pid}&port=7": "soft:10.0.0.1?pcap={pid}&port=7",
	} {
		s, c, err := TwoDevices(base)
		require.NoError(t, err)
		require.Equal(t, server, s)
		require.Contains(t, c, "pcap=")
		require.Equal(t, strings.HasPrefix(base, "soft:"), strings.HasSuffix(c, "port=0"))
	}
}

// TestDialWithoutServer: a server that the caller has started and that does not
// listen any more has gone; a server that others start may not have been
// started.
func TestDialWithoutServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	_, err = Dial(t.Context(), l.Addr().String(), "", &cli.DeviceFlags{}, io.Discard, uapi.OpenConfig{})
	require.ErrorIs(t, err, ErrGone)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	_, err = Dial(t.Context(), l.Addr().String(), "rdmashim server", &cli.DeviceFlags{}, io.Discard, uapi.OpenConfig{})
	require.NotErrorIs(t, err, ErrGone)
	require.ErrorContains(t, err, "is 'rdmashim server' running there?")
}

// TestHostileWelcome: what a server calls its device goes to the terminal.
func TestHostileWelcome(t *testing.T) {
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	go func() {
		var hello Hello
		_ = NewConn(there).Receive(&hello, 0)
		_ = NewConn(there).Send(Welcome{Device: Side{Device: "soft\x1b[2J", Note: "a\u009bb", MTU: 1}})
	}()
	c := &Client{Conn: NewConn(here)}
	require.NoError(t, c.Greet("job", 1, 0, func() error { return nil }))
	require.Equal(t, Side{Device: `soft\x1b[2J`, Note: `a\u009bb`, MTU: 1}, c.Server.Device)
}
