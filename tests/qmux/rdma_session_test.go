package qmux

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/child"
	"github.com/rdmashim/rdmashim/tests/leak"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/qmux"
	"github.com/rdmashim/rdmashim/uapi/qmux/wire"
	"github.com/rdmashim/rdmashim/uapi/rdmanet"
)

// sessions makes both sides of a connection, with TLS if there are protocols.
func sessions(t *testing.T, client, server net.Conn, protocols []string, cfg *qmux.Config) (x, y *qmux.Conn) {
	t.Helper()
	made := make(chan error, 1)
	go func() {
		var err error
		y, err = qmux.Server(secured(t, server, protocols, true), cfg)
		made <- err
	}()
	x = must.Get(qmux.Client(secured(t, client, protocols, false), cfg))(t)
	require.NoError(t, <-made)
	t.Cleanup(func() {
		x.CloseWithError(0, "")
		y.CloseWithError(0, "")
	})
	return x, y
}

// TestRDMA: streams both ways, datagrams and a close, over RDMA in memory; also
// when packets get lost, and with TLS inside.
func TestRDMA(t *testing.T) {
	for _, c := range []struct {
		name, faults string
		protocols    []string
	}{
		{"plain", "", nil},
		{"loss", "loss=1%&seed=7", nil},
		{"tls", "", []string{"test"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := newNetwork(t, c.faults).pair(t)
				x, y := sessions(t, client, server, c.protocols, &qmux.Config{EnableDatagrams: true, MaxIncomingUniStreams: 2})
				ctx := soon(t)
				data := pattern(300_000, 31)
				var wg sync.WaitGroup
				for _, side := range [][2]*qmux.Conn{{x, y}, {y, x}} {
					wg.Go(func() {
						for range 4 {
							s, err := side[0].OpenUniStreamSync(ctx)
							if !fine(t, err) {
								return
							}
							_, err = s.Write(data)
							fine(t, err)
							fine(t, s.Close())
						}
					})
					wg.Go(func() {
						for range 4 {
							s, err := side[1].AcceptUniStream(ctx)
							if !fine(t, err) {
								return
							}
							got, err := io.ReadAll(s)
							if fine(t, err) && !bytes.Equal(got, data) {
								t.Errorf("%d bytes, or others", len(got))
							}
						}
					})
				}
				wg.Wait()
				var long *qmux.DatagramTooLargeError // though records are longer
				require.ErrorAs(t, x.SendDatagram(make([]byte, wire.DefaultMaxRecord)), &long)
				require.NoError(t, x.SendDatagram([]byte("datagram")))
				got := must.Get(y.ReceiveDatagram(ctx))(t)
				require.Equal(t, "datagram", string(got))
				require.NoError(t, x.CloseWithError(42, "bye"))
				requireClosed(t, y, &qmux.ApplicationError{Remote: true, ErrorCode: 42}, "bye")

				// Records are as long as a chunk of the ring, but in TLS.
				perRecord := x.ConnectionStats().DataSent / x.ConnectionStats().RecordsSent
				if c.protocols == nil {
					require.Greater(t, perRecord, uint64(3*wire.DefaultMaxRecord/2))
				} else {
					require.Less(t, perRecord, uint64(wire.DefaultMaxRecord))
				}
			})
		})
	}
}

// asPeer has this binary be the peer of TestRDMAKilled.
const asPeer = "QMUX_TEST_PEER"

// bePeer echoes streams until it is killed, or its input ends.
func bePeer() error {
	device, err := uapi.Open("soft", uapi.OpenConfig{})
	if err != nil {
		return err
	}
	l, err := rdmanet.ListenOn(device, ":0", rdmanet.Config{})
	if err != nil {
		return err
	}
	info, err := device.QueryDevice()
	if err != nil {
		return err
	}
	port := l.Addr().String()
	os.Stdout.WriteString(net.JoinHostPort(info.Address.Addr().String(), port[strings.LastIndex(port, ":")+1:]) + "\n")
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	conn, err := l.Accept()
	if err != nil {
		return err
	}
	c, err := qmux.Server(conn, nil)
	for err == nil {
		var s *qmux.Stream
		if s, err = c.AcceptStream(context.Background()); err == nil {
			go io.Copy(s, s)
		}
	}
	return err
}

func TestMain(m *testing.M) {
	if os.Getenv(asPeer) != "" {
		if err := bePeer(); err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		return
	}
	leak.Main(m)
}

// TestRDMAKilled: the peer's process is killed amid streams. All calls end with
// the byte stream's error, and nothing is left.
func TestRDMAKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("two processes need a machine that keeps real time; run it without -short")
	}
	peer := child.Start(t, asPeer+"=1")
	address := must.Get(peer.Out.ReadString('\n'))(t)

	device := softDevice(t)
	t.Cleanup(func() { require.Empty(t, device.OpenHandles()) })
	d := rdmanet.Dialer{Device: device, Config: rdmanet.Config{KeepAlive: time.Second}}
	conn, err := d.DialContext(soon(t), "rdma", strings.TrimSpace(address))
	conn = must.Get(gone(t, conn, err))(t)
	c, err := qmux.Client(conn, &qmux.Config{MaxIdleTimeout: time.Hour})
	require.NoError(t, err)
	t.Cleanup(func() { c.CloseWithError(0, "") })

	var streams [8]*qmux.Stream
	for i := range streams {
		streams[i] = must.Get(c.OpenStreamSync(soon(t)))(t)
		must.Get(streams[i].Write([]byte("hello")))(t)
		requireFull(t, streams[i], "hello")
	}
	errs := make(chan error)
	for _, s := range streams {
		go func() { // more than the windows take, since the echo is not read
			_, err := s.Write(make([]byte, 8<<20))
			errs <- err
		}()
		go func() {
			_, err := c.AcceptStream(context.Background())
			errs <- err
		}()
	}
	require.NoError(t, peer.Process.Kill())
	want := ended(t, c)
	require.ErrorContains(t, want, "rdma")
	for range 16 {
		require.Equal(t, want.Error(), (<-errs).Error())
	}
}

// TestRecordsAreChunks: on a message ring a record goes as one chunk, hence as
// one message of the device, and is as long as one.
func TestRecordsAreChunks(t *testing.T) {
	client, server := newNetwork(t, "").pair(t)
	const size, window = 4 << 20, 16 << 20
	a, b := sessions(t, client, server, nil, &qmux.Config{InitialStreamReceiveWindow: window, InitialConnectionReceiveWindow: window})
	s := must.Get(a.OpenUniStreamSync(soon(t)))(t)
	// A Write whose turn it is not has its data laid, in more records.
	records, chunks := uint64(0), uint64(0)
	for long := false; !long; {
		before := records
		sent := make(chan error, 1)
		go func() {
			_, err := s.Write(make([]byte, size))
			sent <- err
		}()
		if before == 0 {
			r := must.Get(b.AcceptUniStream(soon(t)))(t)
			go io.Copy(io.Discard, r)
		}
		require.NoError(t, <-sent)
		records, chunks = a.ConnectionStats().RecordsSent, client.(*rdmanet.Conn).Stats().ChunksSent
		require.LessOrEqual(t, chunks, records)
		long = records-before < size/(128<<10)
	}
}
