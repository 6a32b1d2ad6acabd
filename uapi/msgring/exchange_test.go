package msgring_test

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// connectOver connects a dialer on a to an acceptor on b over the two ends of a
// channel.
func connectOver(t *testing.T, a, b *uapi.Device, near, far net.Conn, asks, takes msgring.Config) (dialer, acceptor *msgring.Conn, dialErr, acceptErr error) {
	t.Helper()
	asks.Workers, takes.Workers = worker(t, a), worker(t, b)
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		acceptor, acceptErr = msgring.AcceptOver(t.Context(), b, far, takes)
	}()
	dialer, dialErr = msgring.DialOver(t.Context(), a, near, asks)
	<-accepted
	return dialer, acceptor, dialErr, acceptErr
}

// TestOver: ends that shared a pipe send messages both ways; the peer reads all
// behind Close; nothing is left on the devices.
func TestOver(t *testing.T) {
	for _, mode := range []msgring.Mode{msgring.Bytes, msgring.Messages} {
		synctest.Test(t, func(t *testing.T) {
			x, y := uapitest.Pair(t, "")
			before := len(x.OpenHandles()) + len(y.OpenHandles())
			near, far := net.Pipe()
			a, b, err, acceptErr := connectOver(t, x, y, near, far, msgring.Config{Mode: mode}, msgring.Config{Mode: mode})
			require.NoError(t, err)
			require.NoError(t, acceptErr)
			require.Equal(t, a.Info().RemoteAddr, b.Info().LocalAddr)
			p := make([]byte, 5)
			for range 1000 {
				_, err = a.Write([]byte("hello"))
				require.NoError(t, err)
				_, err = io.ReadFull(b, p)
				require.NoError(t, err)
				_, err = b.Write(p)
				require.NoError(t, err)
				_, err = io.ReadFull(a, p)
				require.NoError(t, err)
			}
			_, err = a.Write([]byte("last"))
			require.NoError(t, err)
			require.NoError(t, a.CloseContext(context.Background()))
			got, err := io.ReadAll(b)
			require.NoError(t, err)
			require.Equal(t, "last", string(got))
			require.NoError(t, b.CloseContext(context.Background()))
			if !onWorkers {
				require.Equal(t, before, len(x.OpenHandles())+len(y.OpenHandles()))
			}
		})
	}
}

// TestOverTCP: ends that shared TCP, and whose packets are on a network, have
// READs beside messages.
func TestOverTCP(t *testing.T) {
	device, err := uapi.Open(cmp.Or(realDevice, "soft"), uapi.OpenConfig{})
	require.NoError(t, err)
	defer func() { require.NoError(t, device.Close()) }()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	far, err := l.Accept()
	require.NoError(t, err)
	config := msgring.Config{Mode: msgring.Messages}
	r := remote{t: t}
	var acceptErr error
	r.a, r.b, err, acceptErr = connectOver(t, device, device, near, far, config, config)
	require.NoError(t, err)
	require.NoError(t, acceptErr)
	ended := r.pump()
	r.many()
	closeBoth(t, r.a, r.b)
	ended.Wait()
}

// TestOverChannelEnds: the end of the channel, or a word on it, ends the
// connection at both ends, those that wait and READs included.
func TestOverChannelEnds(t *testing.T) {
	for name, harm := range map[string]func(net.Conn) error{
		"it is closed":     net.Conn.Close,
		"somebody says so": func(c net.Conn) error { _, err := c.Write([]byte{0}); return err },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, y := uapitest.Pair(t, "")
				near, far := net.Pipe()
				config := msgring.Config{Mode: msgring.Messages}
				a, b, err, acceptErr := connectOver(t, x, y, near, far, config, config)
				require.NoError(t, err)
				require.NoError(t, acceptErr)
				ended := make(chan error, 1)
				go func() {
					_, err := a.Peek()
					ended <- err
				}()
				synctest.Wait()
				require.NoError(t, harm(far))
				require.ErrorIs(t, <-ended, uapi.ErrPeerDisconnected)
				_, err = a.Write([]byte{1})
				require.ErrorIs(t, err, uapi.ErrPeerDisconnected)
				_, _, _, err = a.RegMR(make([]byte, 1), uapi.AccessLocalWrite)
				if err == nil {
					require.Error(t, a.PostRead(0, 0, 1, 0, 0, nil))
				}
				require.NoError(t, a.CloseContext(context.Background()))
				_, err = b.Peek()
				require.ErrorIs(t, err, uapi.ErrPeerDisconnected)
				require.NoError(t, b.CloseContext(context.Background()))
			})
		})
	}
}

// TestOverRefused: a hello that the acceptor does not take is refused with its
// reason, and the channel is closed.
func TestOverRefused(t *testing.T) {
	messages := msgring.Config{Mode: msgring.Messages}
	for _, c := range []struct {
		name        string
		asks, takes msgring.Config
		reason      msgring.Reason
		is          error
	}{
		{"mode", msgring.Config{}, messages, 3, syscall.EPROTONOSUPPORT},
		{"service", msgring.Config{Service: "a"}, msgring.Config{Service: "b"}, 4, syscall.ECONNREFUSED},
		{"busy", messages, msgring.Config{Mode: msgring.Messages, Admit: func(msgring.Session) (msgring.Session, error) {
			return msgring.Session{}, &msgring.Refusal{Reason: msgring.ReasonBusy}
		}}, msgring.ReasonBusy, syscall.EAGAIN},
		{"no reason", messages, msgring.Config{Mode: msgring.Messages, Admit: func(msgring.Session) (msgring.Session, error) {
			return msgring.Session{}, io.ErrNoProgress
		}}, 0, uapi.ErrRefused},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, y := uapitest.Pair(t, "")
				near, far := net.Pipe()
				_, _, err, acceptErr := connectOver(t, x, y, near, far, c.asks, c.takes)
				require.Error(t, acceptErr)
				require.ErrorIs(t, err, c.is)
				require.ErrorIs(t, err, uapi.ErrRefused)
				var told *msgring.Refusal
				if c.reason != 0 {
					require.ErrorAs(t, err, &told)
					require.Equal(t, c.reason, told.Reason)
				}
				_, err = near.Write([]byte{0})
				require.ErrorIs(t, err, io.ErrClosedPipe)
			})
		})
	}
}

// TestOverStrangers: bytes that are no exchange, or the half of one, are an
// error at both ends, bounded by the context, and leave nothing.
func TestOverStrangers(t *testing.T) {
	record := func(head string, n int) []byte {
		return append([]byte(head), bytes.Repeat([]byte{7}, n)...)
	}
	for name, c := range map[string]struct {
		says   []byte
		silent bool // it says nothing more, and does not hang up
		is     error
	}{
		"nothing":             {silent: true, is: context.DeadlineExceeded},
		"half a head":         {says: []byte("RDM"), silent: true, is: context.DeadlineExceeded},
		"it hangs up":         {is: io.ErrUnexpectedEOF},
		"a head, no body":     {says: record("RDMX\x01\x01\x00\x38", 0), is: io.ErrUnexpectedEOF},
		"HTTP":                {says: []byte("GET / HTTP/1.1\r\n\r\n"), is: syscall.EPROTO},
		"another version":     {says: record("RDMX\x02\x01\x00\x00", 0), is: syscall.EPROTONOSUPPORT},
		"too long":            {says: record("RDMX\x01\x01\xff\xff", 0), is: syscall.EPROTO},
		"an unknown kind":     {says: record("RDMX\x01\x09\x00\x00", 0), is: syscall.EPROTO},
		"a hello that is not": {says: record("RDMX\x01\x01\x00\x38", 56), is: syscall.EPROTONOSUPPORT},
	} {
		t.Run(name, func(t *testing.T) {
			for _, end := range []func(context.Context, *uapi.Device, net.Conn, msgring.Config) (*msgring.Conn, error){msgring.DialOver, msgring.AcceptOver} {
				synctest.Test(t, func(t *testing.T) {
					x, _ := uapitest.Pair(t, "")
					before := len(x.OpenHandles())
					near, far := net.Pipe()
					go func() { _, _ = io.Copy(io.Discard, far) }()
					go func() {
						_, _ = far.Write(c.says)
						if !c.silent {
							synctest.Wait() // it has read that, and its own hello is read
							_ = far.Close()
						}
					}()
					start := time.Now()
					_, err := end(t.Context(), x, near, msgring.Config{})
					require.ErrorIs(t, err, c.is)
					require.LessOrEqual(t, time.Since(start), uapi.DefaultExchangeTimeout)
					require.Len(t, x.OpenHandles(), before)
					_ = far.Close()
				})
			}
		})
	}
}
