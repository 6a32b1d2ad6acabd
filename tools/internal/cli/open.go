package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"

	"github.com/rdmashim/rdmashim/uapi"
)

// Open opens a device, and tells automatic choices on stderr.
func Open(name string, stderr io.Writer, config uapi.OpenConfig) (*uapi.Device, error) {
	config.Logger = logger(stderr)
	d, err := uapi.Open(name, config)
	return d, fromVariable(name, err)
}

// OpenToListen opens the device for a listener at ADDR:PORT, or at PORT of the
// device's own address, and returns the address with its port. name is the
// device's, options included; the address is put into a plain soft one.
func OpenToListen(address, name string, stderr io.Writer) (*uapi.Device, string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host, port = "", address
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return nil, "", Usagef("%q: want ADDR:PORT, or PORT on the device's address", address)
	}
	d, err := uapi.OpenLocal(host, uapi.OpenConfig{Device: name, Logger: logger(stderr)})
	if err != nil {
		return nil, "", fromVariable(name, err)
	}
	if host == "" {
		info, err := d.QueryDevice()
		if err != nil {
			return nil, "", errors.Join(err, d.Close())
		}
		host = info.Address.Addr().String()
	}
	return d, net.JoinHostPort(host, port), nil
}

// fromVariable says of the error of opening a device that RDMASHIM_DEVICE
// named it.
func fromVariable(name string, err error) error {
	if variable := os.Getenv("RDMASHIM_DEVICE"); err != nil && variable != "" && strings.HasPrefix(name, variable) {
		return fmt.Errorf("RDMASHIM_DEVICE=%s: %w", variable, err)
	}
	return err
}

func logger(stderr io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{
		Level: slog.LevelWarn,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}
