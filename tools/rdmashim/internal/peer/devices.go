package peer

import (
	"cmp"
	"os"
	"strings"

	"github.com/rdmashim/rdmashim/tools/rdmashim/internal/cli"
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
