//go:build guest && linux

package interop

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/rdmanet"
)

// TestStreams: a connection of package rdmanet between the soft RNIC and rxe,
// either of them listening, over both families; bytes both ways with half-close
// and HTTP by TLS. The soft RNIC loses packets in the end.
func TestStreams(t *testing.T) {
	for _, c := range []struct {
		name, options string
		family        family
	}{
		{"IPv6", "", families[1]},
		{"faults", "?loss=1%&reorder=2%&dup=1%&seed=5", families[0]},
	} {
		if testing.Short() && c.name != "faults" {
			continue
		}
		for _, listener := range []string{"soft", "rxe"} {
			t.Run(c.name+"/"+listener+" listens", func(t *testing.T) {
				soft, rxe := openSoft(t, softName(c.family, 5, c.options)), openRXE(t, c.family)
				if listener == "soft" {
					streams(t, soft, rxe, c.family.softAddr(5))
				} else {
					streams(t, rxe, soft, c.family.rxe)
				}
				require.Empty(t, soft.OpenHandles())
				require.Empty(t, rxe.OpenHandles())
			})
		}
	}
}

func streams(t *testing.T, server, client *uapi.Device, addr netip.Addr) {
	l := must.Get(rdmanet.ListenOn(server, ":0", rdmanet.Config{}))(t)
	where := netip.AddrPortFrom(addr, l.Addr().(rdmanet.Addr).Port()).String()
	d := rdmanet.Dialer{Device: client}
	x := must.Get(d.DialContext(wait(t), "rdma", where))(t)
	y := must.Get(l.Accept())(t)
	exchange(t, x.(*rdmanet.Conn), y.(*rdmanet.Conn), 512<<10)

	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	}))
	require.NoError(t, s.Listener.Close())
	s.Listener = l
	s.StartTLS()
	defer func() {
		s.Close()
		if err := rdmanet.Flush(wait(t)); !errors.Is(err, rdmanet.ErrUndelivered) { // a request that a client gave up
			require.NoError(t, err)
		}
	}()
	transport := s.Client().Transport.(*http.Transport)
	defer transport.CloseIdleConnections()
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return d.DialContext(ctx, network, where)
	}
	transport.TLSClientConfig = &tls.Config{RootCAs: transport.TLSClientConfig.RootCAs, ServerName: "example.com"}
	body := randomBytes(128<<10, 3)
	r := must.Get(s.Client().Post("https://"+where, "application/octet-stream", bytes.NewReader(body)))(t)
	got := must.Get(io.ReadAll(r.Body))(t)
	require.NoError(t, r.Body.Close())
	require.True(t, bytes.Equal(body, got), "the body came back differently")
	count(2, 2*len(body))
}

// exchange has both ends write n bytes at once, end their data, and check the
// other's; then it closes both.
func exchange(t *testing.T, x, y *rdmanet.Conn, n int) {
	var all sync.WaitGroup
	for i, end := range []*rdmanet.Conn{x, y} {
		require.NoError(t, end.SetDeadline(time.Now().Add(2*patience)))
		mine, theirs := randomBytes(n, byte(i)), randomBytes(n, byte(1-i))
		all.Go(func() {
			_, err := end.Write(mine)
			if err == nil {
				err = end.CloseWrite()
			}
			if err != nil {
				t.Errorf("write: %v", err)
			}
		})
		all.Go(func() {
			got, err := io.ReadAll(end)
			if err != nil || !bytes.Equal(got, theirs) {
				t.Errorf("read %d bytes of %d: %v", len(got), n, err)
			}
		})
	}
	all.Wait()
	require.NoError(t, x.CloseContext(wait(t)))
	require.NoError(t, y.CloseContext(wait(t)))
	count(2, 2*n)
}

func randomBytes(n int, seed byte) []byte {
	data := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(data)
	return data
}
