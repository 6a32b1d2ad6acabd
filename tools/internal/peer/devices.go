package peer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/uapi"
)

// DefaultDevice is the device that was named, or that uapi.Open would take.
func DefaultDevice(name string) string {
	return cmp.Or(name, os.Getenv("RDMASHIM_DEVICE"), uapi.DefaultDevice)
}

// TwoDevices names the devices of two processes of this machine. They cannot
// share a soft device's address and port: with a named address the client takes
// a free port there. Nor can they write one capture: it is the client's, unless
// {pid} in the file's name gives each its own.
func TwoDevices(base string) (server, client string, err error) {
	name, options, _ := strings.Cut(base, "?")
	if name == "sim" {
		return "", "", cli.Usagef("sim devices live in one process and this needs two: use --device soft")
	}
	server, client = base, base
	for option := range strings.SplitSeq(options, "&") {
		if strings.HasPrefix(option, "pcap=") && !strings.Contains(option, "{pid}") {
			server = withoutOption(base, "pcap")
		}
	}
	if strings.HasPrefix(name, "soft:") {
		client = cli.WithOptions(withoutOption(base, "port"), "port=0")
	}
	return server, client, nil
}

// withoutOption is a device name without one of its options.
func withoutOption(device, option string) string {
	name, options, _ := strings.Cut(device, "?")
	var keep []string
	for o := range strings.SplitSeq(options, "&") {
		if o != "" && !strings.HasPrefix(o, option+"=") {
			keep = append(keep, o)
		}
	}
	return cli.WithOptions(name, strings.Join(keep, "&"))
}

// OpenToDial opens the named device, or the one that the route to addr takes.
func OpenToDial(ctx context.Context, name, addr string, stderr io.Writer) (*uapi.Device, error) {
	if name != "" {
		return cli.Open(name, stderr, uapi.OpenConfig{})
	}
	return uapi.OpenRoute(ctx, addr, uapi.OpenConfig{})
}

// Listen opens devices as OpenToServe does, listens there on host, or on all
// addresses, and prints where. end closes what it has opened.
func Listen(name, host string, port uint16, stdout, stderr io.Writer) (l *uapi.Listener, end func(), err error) {
	devices, err := OpenToServe(name, host, stderr)
	if err == nil {
		l, err = uapi.Listen(net.JoinHostPort(host, strconv.Itoa(int(port))), uapi.ListenConfig{})
	}
	end = func() {
		if l != nil {
			l.Close()
		}
		for _, d := range devices {
			d.Close()
		}
	}
	if err == nil {
		err = PrintListening(stdout, l.Addr())
	}
	if err != nil {
		end()
	}
	return l, end, err
}

// OpenToServe opens the named device, a plain soft one on host if that is not
// empty, or all there are: the kernel's, and a soft device on every other
// address of this machine.
func OpenToServe(name, host string, stderr io.Writer) ([]*uapi.Device, error) {
	if name != "" || os.Getenv("RDMASHIM_DEVICE") != "" {
		var c *uapi.Device
		var err error
		if host != "" {
			c, _, err = cli.OpenToListen(net.JoinHostPort(host, "0"), name, stderr)
		} else {
			c, err = cli.Open(name, stderr, uapi.OpenConfig{})
		}
		if err != nil {
			return nil, err
		}
		return []*uapi.Device{c}, nil
	}
	list, err := uapi.Devices()
	if err != nil {
		return nil, err
	}
	var devices []*uapi.Device
	var tried []error
	taken := map[netip.Addr]bool{}
	for _, kind := range []uapi.Kind{uapi.KindHost, uapi.KindSoft} {
		for _, d := range list {
			if d.Kind != kind || d.PortState != uapi.PortActive || kind == uapi.KindSoft && taken[d.GIDs[0].Addr] {
				continue
			}
			var c *uapi.Device
			if kind == uapi.KindHost {
				c, err = uapi.Open(d.Device, uapi.OpenConfig{})
			} else { // beside another server's, where there is one
				c, err = uapi.OpenLocal(d.Address.Addr().String(), uapi.OpenConfig{Kinds: []uapi.Kind{kind}})
			}
			if err != nil {
				tried = append(tried, err)
				continue
			}
			devices = append(devices, c)
			for _, g := range d.GIDs {
				taken[g.Addr] = true
			}
		}
	}
	if len(devices) == 0 {
		return nil, fmt.Errorf("no device to serve on; name one with --device, or make one with 'rdmashim link up': %w", cmp.Or(errors.Join(tried...), error(syscall.ENODEV)))
	}
	return devices, nil
}
