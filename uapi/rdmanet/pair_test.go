package rdmanet_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/rdmanet"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// patience bounds hangs.
const patience = time.Minute

// realDevice is a device on which tests run that otherwise run on a network in
// memory: the kernel's, which tests/guest names.
var realDevice = os.Getenv("RDMANET_TEST_DEVICE")

// network has the options of the network in memory, see uapitest.Pair.
var network string

// virtual runs a test on virtual time, in which a busy machine makes nothing
// late: no peer is given up because it is slow. A real device keeps real time.
func virtual(t *testing.T, f func(t *testing.T)) {
	if realDevice != "" {
		f(t)
		return
	}
	synctest.Test(t, f)
}

// host is a device with a listener, and a dialer to it on a device of its own.
// It knows the connections that both made.
type host struct {
	*rdmanet.Listener
	rdmanet.Dialer
	server, client *uapi.Device
	addr           string

	mu       sync.Mutex
	conns    []*rdmanet.Conn // guarded by mu
	dialling int             // guarded by mu; net/http leaves dials under way
	dialled  sync.Cond       // on mu: a dial has ended
}

// newHost is a host on a private network in memory, or on the real device.
func newHost(t *testing.T, config rdmanet.Config) *host {
	t.Helper()
	if realDevice != "" {
		return hostOn(t, open(t, realDevice), open(t, realDevice), config)
	}
	server, client := uapitest.Pair(t, network)
	return hostOn(t, server, client, config)
}

// softHost is a host on loopback.
func softHost(t *testing.T, config rdmanet.Config) *host {
	t.Helper()
	return hostOn(t, open(t, "soft"), open(t, "soft"), config)
}

// hostOn makes a host of two devices. When the test ends it closes all
// connections, and nothing of them is left.
func hostOn(t *testing.T, server, client *uapi.Device, config rdmanet.Config) *host {
	t.Helper()
	h := &host{server: server, client: client}
	h.Device, h.Config, h.dialled.L = h.client, config, &h.mu
	h.Listener = must.Get(rdmanet.ListenOn(h.server, ":0", config))(t)
	h.addr = at(t, h.server, h.Listener)
	before := h.missingReceives(t)
	t.Cleanup(func() {
		if err := h.Listener.Close(); !errors.Is(err, net.ErrClosed) {
			require.NoError(t, err)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		for h.dialling > 0 {
			h.dialled.Wait()
		}
		for _, c := range h.conns {
			givenBack(t, c.CloseContext(limited(t)))
		}
		givenBack(t, rdmanet.Flush(limited(t)))
		for _, device := range []*uapi.Device{h.server, h.client} {
			require.Empty(t, device.OpenHandles())
		}
		require.Equal(t, before, h.missingReceives(t), "messages that met a missing receive")
	})
	return h
}

// givenBack holds that connections have given everything back, whether or not
// all has arrived.
func givenBack(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, rdmanet.ErrUndelivered) {
		require.NoError(t, err)
	}
}

// missingReceives counts the messages that met no receive on either device. A
// kernel's device counts since it was made.
func (h *host) missingReceives(t *testing.T) (n uint64) {
	t.Helper()
	for _, device := range []*uapi.Device{h.server, h.client} {
		counters, err := device.Counters()
		if errors.Is(err, net.ErrClosed) { // the test did that
			continue
		}
		require.NoError(t, err)
		n += counters["send_rnr_err"]
	}
	return n
}

func (h *host) note(c net.Conn, err error) (net.Conn, error) {
	if c, ok := c.(*rdmanet.Conn); ok {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.conns = append(h.conns, c)
	}
	return c, err
}

func (h *host) Accept() (net.Conn, error) { return h.note(h.Listener.Accept()) }

func (h *host) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	h.mu.Lock()
	h.dialling++
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.dialling--
		h.dialled.Broadcast()
	}()
	return h.note(h.Dialer.DialContext(ctx, network, addr))
}

func open(t *testing.T, device string) *uapi.Device {
	t.Helper()
	d := must.Get(uapi.Open(device, uapi.OpenConfig{}))(t)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// at is where a listener of a device is reached.
func at(t *testing.T, device *uapi.Device, l net.Listener) string {
	t.Helper()
	info := must.Get(device.QueryDevice())(t)
	return netip.AddrPortFrom(info.Address.Addr(), l.Addr().(rdmanet.Addr).Port()).String()
}

// limited is a context that ends a test that hangs, also in its cleanups.
func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// pipe makes a connection: x dialled, y was accepted.
func (h *host) pipe() (x, y *rdmanet.Conn, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	dialled, err := h.dialUntilHeard(ctx)
	if err != nil {
		return nil, nil, err
	}
	accepted, err := h.Accept()
	if err != nil {
		_ = dialled.Close()
		return nil, nil, err
	}
	return dialled.(*rdmanet.Conn), accepted.(*rdmanet.Conn), nil
}

// dialUntilHeard dials, and once more when a network with faults has lost all
// five confirmations, without which the listener gives the dialer up: at 5 %
// loss that happens to one connection of some 100,000.
func (h *host) dialUntilHeard(ctx context.Context) (net.Conn, error) {
	for {
		failed, _ := h.Failed()
		c, err := h.DialContext(ctx, "rdma", h.addr)
		if err != nil || network == "" {
			return c, err
		}
		time.Sleep(5 * time.Second) // virtual; longer than a listener waits
		if now, _ := h.Failed(); now == failed {
			return c, nil
		}
		_ = c.Close()
	}
}

// join is pipe that must succeed.
func (h *host) join(t *testing.T) (x, y *rdmanet.Conn) {
	t.Helper()
	x, y, err := h.pipe()
	require.NoError(t, err)
	return x, y
}

// connect is join on a host of its own.
func connect(t *testing.T, config rdmanet.Config) (x, y *rdmanet.Conn) {
	t.Helper()
	return newHost(t, config).join(t)
}

// beside is the address of another port of the host's.
func (h *host) beside(port string) string {
	host, _, _ := net.SplitHostPort(h.addr)
	return net.JoinHostPort(host, port)
}

// echoBytes serves connections, a byte each, until the listener ends.
func (h *host) echoBytes() {
	for {
		c, err := h.Accept()
		if err != nil {
			return
		}
		go func() { _, _ = io.Copy(c, io.LimitReader(c, 1)) }()
	}
}
