package registration_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/qmux"
	"github.com/rdmashim/rdmashim/uapi/registration"
)

// TestCloseOpen: a registration with a listener and connections closes, and all
// that waits on them ends: here with net.ErrClosed, at the peers with what they
// were told. The same address and port open again at once.
func TestCloseOpen(t *testing.T) {
	everywhere(t, func(t *testing.T, config registration.Config) {
		client := open(t, config)
		server := must.Get(registration.Open(soon(t), config))(t)
		port := 0
		for range 2 {
			l := must.Get(server.Listen(soon(t), port))(t)
			port = int(l.Addr().Port())
			waits := make(chan error)
			ends := 0
			wait := func(f func() error) {
				ends++
				go func() { waits <- f() }()
			}
			var remote []*registration.Conn
			for range 3 {
				x, y := connect(t, client, l)
				remote = append(remote, x)
				s := must.Get(y.OpenStreamSync(soon(t)))(t)
				wait(func() error { _, err := s.Read(make([]byte, 1)); return err })
				wait(func() error { _, err := y.ReceiveDatagram(context.Background()); return err })
				wait(func() error { <-y.Context().Done(); return context.Cause(y.Context()) })
			}
			wait(func() error { _, err := l.Accept(context.Background()); return err })
			require.Equal(t, 3, server.Stats().Connections)
			require.NoError(t, server.Close())
			require.NoError(t, server.Close())
			for range ends {
				require.ErrorIs(t, <-waits, net.ErrClosed)
			}
			for _, c := range remote {
				_, err := c.AcceptStream(soon(t))
				var told *qmux.ApplicationError
				require.ErrorAs(t, err, &told)
				require.Equal(t, "registration closed", told.ErrorMessage)
				require.True(t, told.Remote)
			}
			_, err := server.Dial(soon(t), l.Addr().String())
			require.ErrorIs(t, err, net.ErrClosed)
			_, err = server.Listen(soon(t), 0)
			require.ErrorIs(t, err, net.ErrClosed)
			stats := server.Stats()
			require.Zero(t, stats.Connections)
			require.EqualValues(t, 3, stats.Accepted)

			server = must.Get(registration.Open(soon(t), config))(t)
		}
		require.NoError(t, server.Close())
		require.EqualValues(t, 6, client.Stats().Dialed)
	})
}

// TestCloseDialling: Close ends a Dial that waits for a peer without a word,
// and connections that were never accepted.
func TestCloseDialling(t *testing.T) {
	silent := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer silent.Close()
	r := must.Get(registration.Open(soon(t), secure(registration.TCP{Addr: "127.0.0.1"})))(t)
	dialled := make(chan error, 1)
	go func() {
		_, err := r.Dial(context.Background(), silent.Addr().String())
		dialled <- err
	}()
	conn := must.Get(silent.Accept())(t)
	defer conn.Close()
	require.NoError(t, r.Close())
	require.ErrorIs(t, <-dialled, net.ErrClosed)

	everywhere(t, func(t *testing.T, config registration.Config) {
		client := open(t, config)
		server := must.Get(registration.Open(soon(t), config))(t)
		l := listen(t, server)
		c, err := client.Dial(soon(t), l.Addr().String())
		if err == nil { // else the listener's device was gone before
			require.NoError(t, server.Close())
			<-c.Context().Done()
		}
		_, err = l.Accept(soon(t))
		require.ErrorIs(t, err, net.ErrClosed)
		require.ErrorIs(t, l.Close(), net.ErrClosed)
	})
}

// TestNothingLeft: connections that have ended leave nothing on the device,
// whichever side closed.
func TestNothingLeft(t *testing.T) {
	for form, configure := range forms {
		t.Run(form, func(t *testing.T) {
			r := open(t, configure(onRDMA(registration.Rings{})))
			l := listen(t, r)
			before := len(r.OpenHandles())
			for i := range 4 {
				x, y := connect(t, r, l)
				require.Greater(t, len(r.OpenHandles()), before)
				if i%2 == 0 {
					x, y = y, x
				}
				require.NoError(t, x.CloseWithError(7, "done"))
				<-y.Context().Done()
			}
			nothing := func() bool { return len(r.OpenHandles()) == before && r.Stats().Connections == 0 }
			require.Eventually(t, nothing, patience, time.Millisecond)
		})
	}
}

// TestListenerClose: connections that were accepted stay.
func TestListenerClose(t *testing.T) {
	everywhere(t, func(t *testing.T, config registration.Config) {
		r := open(t, config)
		l := listen(t, r)
		x, y := connect(t, r, l)
		require.NoError(t, l.Close())
		require.NoError(t, x.SendDatagram([]byte("still here")))
		p := must.Get(y.ReceiveDatagram(soon(t)))(t)
		require.Equal(t, "still here", string(p))
	})
}
