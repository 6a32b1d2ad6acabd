package quicudp_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http/httptest"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/leak"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/qmux"
	"github.com/rdmashim/rdmashim/uapi/registration"
	"github.com/rdmashim/rdmashim/uapi/registration/quicudp"
)

func TestMain(m *testing.M) { leak.Main(m) }

// patience bounds hangs, and is the idle time of connections: a busy machine
// ends none.
const patience = time.Minute

// here is an address that other processes do not use.
func here() string {
	if runtime.GOOS != "linux" {
		return "127.0.0.1"
	}
	return fmt.Sprintf("127.104.%d.%d", os.Getpid()>>8&0xff, os.Getpid()&0xff)
}

var certificate = sync.OnceValue(func() tls.Certificate {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	return server.TLS.Certificates[0]
})

func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// open opens a registration for the test.
func open(t testing.TB, transport registration.Transport) *registration.Registration {
	t.Helper()
	r, err := registration.Open(soon(t), registration.Config{
		Transport: transport,
		Streams:   qmux.Config{EnableDatagrams: true, MaxIdleTimeout: patience, HandshakeIdleTimeout: patience},
		TLS:       &tls.Config{Certificates: []tls.Certificate{certificate()}, InsecureSkipVerify: true, NextProtos: []string{"test/1"}},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

// pair is a connection from r to itself by way of a path.
func pair(t testing.TB, r *registration.Registration, path func(netip.AddrPort) string) (client, server *registration.Conn) {
	t.Helper()
	l := must.Get(r.Listen(soon(t), 0))(t)
	client = must.Get(r.Dial(soon(t), path(l.Addr())))(t)
	server = must.Get(l.Accept(soon(t)))(t)
	return client, server
}

func direct(a netip.AddrPort) string { return a.String() }

// echo sends what comes on the peer's next stream back.
func echo(ctx context.Context, c *registration.Conn) error {
	s, err := c.AcceptStream(ctx)
	if err == nil {
		_, err = io.Copy(s, s)
	}
	if err == nil {
		err = s.Close()
	}
	return err
}

// exchange sends size bytes there and back on each of some streams.
func exchange(t *testing.T, client, server *registration.Conn, streams, size int) {
	ctx := soon(t)
	var all sync.WaitGroup
	for i := range streams {
		all.Go(func() { assert.NoError(t, echo(ctx, server)) })
		all.Go(func() {
			data := make([]byte, size)
			_, _ = rand.NewChaCha8([32]byte{byte(i)}).Read(data)
			s, err := client.OpenStreamSync(ctx)
			if !assert.NoError(t, err) {
				return
			}
			go func() {
				_, _ = s.Write(data)
				_ = s.Close()
			}()
			back, err := io.ReadAll(s)
			if err != nil || sha256.Sum256(back) != sha256.Sum256(data) {
				t.Errorf("stream %d: %d bytes of %d, %v", s.StreamID(), len(back), len(data), err)
			}
		})
	}
	all.Wait()
}

// machinery names the parts of QUIC's machinery against loss that were at work.
func machinery(c *registration.Counters) (found []string) {
	for _, m := range []map[string]uint64{c.FramesSent, c.FramesReceived, c.TimersArmed, c.RTTSamples} {
		for name, n := range m {
			switch name {
			case "ACK", "CRYPTO", "PING", "loss", "pto", "path_probe":
				found = append(found, fmt.Sprint(name, " ", n))
			}
		}
	}
	for name, n := range map[string]uint64{"lost": c.Lost, "retransmitted": c.Retransmitted, "congestion": c.CongestionEvents, "MTU probes": c.MTUProbes} {
		if n > 0 {
			found = append(found, fmt.Sprint(name, " ", n))
		}
	}
	return found
}

// TestMachinery: the same program on paths that lose packets, swap and double
// some; every byte arrives as it was sent. Real QUIC acknowledges, measures,
// arms timers and sends again; over RDMA and TCP nothing of it runs, and the
// device below sends again instead.
func TestMachinery(t *testing.T) {
	const streams, size = 4, 1 << 20
	var path *relay
	run := func(transport registration.Transport, way func(netip.AddrPort) string) registration.Stats {
		r := open(t, transport)
		client, server := pair(t, r, way)
		exchange(t, client, server, streams, size)
		if path != nil {
			path.sound.Store(true) // QUIC does not repeat a lost CONNECTION_CLOSE
		}
		require.NoError(t, client.CloseWithError(0, ""))
		<-server.Context().Done()
		return r.Stats()
	}
	udp := run(quicudp.UDP{Addr: here()}, func(a netip.AddrPort) string {
		path = newRelay(t, a)
		return path.addr
	})
	require.NotZero(t, path.lost.Load())
	for _, name := range []string{"ACK", "STREAM"} {
		require.NotZero(t, udp.FramesSent[name], name)
		require.NotZero(t, udp.FramesReceived[name], name)
	}
	require.NotZero(t, udp.TimersArmed["pto"])
	require.NotZero(t, udp.RTTSamples["ACK"])
	require.NotZero(t, udp.Lost)
	require.NotZero(t, udp.Retransmitted)
	require.NotZero(t, udp.CongestionEvents)
	require.NotEmpty(t, machinery(&udp.Counters))
	require.Zero(t, udp.Below)

	for _, transport := range []registration.Transport{
		registration.TCP{Addr: here()}, registration.Soft{Addr: here(), Options: "loss=1%&reorder=4%&dup=3%&seed=7"},
	} {
		s := run(transport, direct)
		require.Empty(t, machinery(&s.Counters), transport.Kind())
		require.NotZero(t, s.FramesSent["STREAM"])
		require.NotZero(t, s.TimersArmed["idle"])
		for kind := range s.TimersArmed {
			require.Contains(t, []string{"idle", "keepalive", "close", "deadline"}, kind)
		}
		if transport.Kind() == "soft" {
			require.NotZero(t, s.Below.Retransmitted, "the device lost packets, and sent them again")
		}
	}
}

// TestSession: streams in one direction, datagrams, cancelling, deadlines and
// closing mean what they mean on the other transports.
func TestSession(t *testing.T) {
	for _, transport := range []registration.Transport{quicudp.UDP{Addr: here()}, registration.TCP{Addr: here()}} {
		t.Run(transport.Kind(), func(t *testing.T) {
			client, server := pair(t, open(t, transport), direct)
			require.Equal(t, transport.Kind(), client.ConnectionState().Transport)
			require.Equal(t, "test/1", client.ConnectionState().Protocol)

			u := must.Get(client.OpenUniStreamSync(soon(t)))(t)
			must.Get(u.Write([]byte("news")))(t)
			require.NoError(t, u.Close())
			v := must.Get(server.AcceptUniStream(soon(t)))(t)
			require.Equal(t, u.StreamID(), v.StreamID())
			text := must.Get(io.ReadAll(v))(t)
			require.Equal(t, "news", string(text))

			require.NoError(t, client.SendDatagram([]byte("datagram")))
			text = must.Get(server.ReceiveDatagram(soon(t)))(t)
			require.Equal(t, "datagram", string(text))
			var long *qmux.DatagramTooLargeError
			require.ErrorAs(t, client.SendDatagram(bytes.Repeat([]byte("x"), 1<<20)), &long)

			s := must.Get(client.OpenStreamSync(soon(t)))(t)
			require.NoError(t, s.SetReadDeadline(time.Unix(1, 0)))
			_, err := s.Read(make([]byte, 1))
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			require.NoError(t, s.SetReadDeadline(time.Time{}))
			must.Get(s.Write([]byte("x")))(t)
			at := must.Get(server.AcceptStream(soon(t)))(t)
			must.Get(io.ReadFull(at, make([]byte, 1)))(t)
			at.CancelWrite(7)
			_, err = s.Read(make([]byte, 1))
			require.ErrorIs(t, err, &qmux.StreamError{StreamID: s.StreamID(), ErrorCode: 7, Remote: true})

			ctx, cancel := context.WithCancelCause(soon(t))
			cancel(syscall.EINTR)
			_, err = client.AcceptStream(ctx)
			require.ErrorIs(t, err, syscall.EINTR, "the context's cause")

			require.NoError(t, client.CloseWithError(42, "thanks"))
			<-server.Context().Done()
			for _, err := range []error{context.Cause(server.Context()), func() error { _, err := server.AcceptStream(soon(t)); return err }()} {
				var closed *qmux.ApplicationError
				require.ErrorAs(t, err, &closed)
				require.EqualValues(t, 42, closed.ErrorCode)
				require.True(t, closed.Remote)
				require.ErrorIs(t, err, net.ErrClosed)
				require.ErrorContains(t, err, transport.Kind())
			}
		})
	}
}

// TestSilence: a peer that vanished, as a killed process does, ends the
// connection after the idle time, with an error that names the transport.
func TestSilence(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits 12 s for the idle time; run it without -short")
	}
	t.Parallel()
	r, err := registration.Open(soon(t), registration.Config{
		Transport: quicudp.UDP{Addr: here()},
		TLS:       &tls.Config{Certificates: []tls.Certificate{certificate()}, InsecureSkipVerify: true, NextProtos: []string{"test/1"}},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	var path *relay
	client, server := pair(t, r, func(a netip.AddrPort) string {
		path = newRelay(t, a)
		return path.addr
	})
	exchange(t, client, server, 1, 10_000)
	s := must.Get(client.OpenStreamSync(soon(t)))(t)
	path.dead.Store(true)
	_, err = s.Read(make([]byte, 1))
	require.ErrorIs(t, err, &qmux.IdleTimeoutError{})
	require.ErrorIs(t, err, syscall.ETIMEDOUT)
	require.ErrorContains(t, err, "registration udp: read")
	<-client.Context().Done() // quic-go ends the streams first
	require.ErrorContains(t, context.Cause(client.Context()), "registration udp")
}

// TestOpenRefuses: a configuration that cannot work fails at Open.
func TestOpenRefuses(t *testing.T) {
	secure := &tls.Config{Certificates: []tls.Certificate{certificate()}, NextProtos: []string{"test/1"}}
	for name, row := range map[string]struct {
		config registration.Config
		errno  syscall.Errno
		text   string
	}{
		"insecure":  {registration.Config{Insecure: true, Transport: quicudp.UDP{Addr: here()}}, syscall.EINVAL, "always encrypted"},
		"name":      {registration.Config{TLS: secure, Transport: quicudp.UDP{Addr: "localhost"}}, syscall.EINVAL, "is not the IP address"},
		"elsewhere": {registration.Config{TLS: secure, Transport: quicudp.UDP{Addr: "192.0.2.1"}}, syscall.EADDRNOTAVAIL, "the interfaces have 127.0.0.1"},
	} {
		_, err := registration.Open(soon(t), row.config)
		require.ErrorIs(t, err, row.errno, name)
		require.ErrorContains(t, err, row.text, name)
	}
}

// TestSockets: a listener's port is free again when it and its connections have
// ended, and Close of the registration ends all.
func TestSockets(t *testing.T) {
	r := open(t, quicudp.UDP{Addr: here()})
	l := must.Get(r.Listen(soon(t), 0))(t)
	port := int(l.Addr().Port())
	client := must.Get(r.Dial(soon(t), l.Addr().String()))(t)
	server := must.Get(l.Accept(soon(t)))(t)
	require.NoError(t, l.Close())
	_, err := l.Accept(soon(t))
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = r.Listen(soon(t), port)
	require.ErrorIs(t, err, syscall.EADDRINUSE, "the connection has it")
	exchange(t, client, server, 1, 1000)
	require.NoError(t, client.CloseWithError(0, ""))
	require.Eventually(t, func() bool {
		l, err = r.Listen(soon(t), port)
		return err == nil
	}, patience, time.Millisecond)
	told := must.Get(open(t, quicudp.UDP{Addr: here()}).Dial(soon(t), l.Addr().String()))(t)
	must.Get(l.Accept(soon(t)))(t)
	_, err = r.Dial(soon(t), l.Addr().String()) // which is never accepted
	require.NoError(t, err)
	require.NoError(t, r.Close())
	<-told.Context().Done()
	var closed *qmux.ApplicationError
	require.ErrorAs(t, context.Cause(told.Context()), &closed)
	require.True(t, closed.Remote)
	again := open(t, quicudp.UDP{Addr: here()})
	must.Get(again.Listen(soon(t), port))(t)
}
