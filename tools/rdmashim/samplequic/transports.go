package samplequic

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/qmux"
	"github.com/rdmashim/rdmashim/uapi/registration"
	"github.com/rdmashim/rdmashim/uapi/registration/quicudp"
)

// defaultTimeout bounds a client.
const defaultTimeout = time.Minute

// transport makes the transport of a word of --on, at an address.
type transport struct {
	word string // as in reports: soft, tcp, rxe0
	at   func(addr string) registration.Transport
	// addr is the device's own address, if the word names a device.
	addr string
}

// parse reads --on.
func parse(on string) (list []transport, err error) {
	seen := map[string]bool{}
	for word := range strings.SplitSeq(on, ",") {
		name, options, _ := strings.Cut(word, "?")
		t := transport{word: name}
		switch {
		case name == "soft":
			t.at = func(addr string) registration.Transport { return registration.Soft{Addr: addr, Options: options} }
		case options != "" || name == "":
			return nil, cli.Usagef("--on %q: %q is no transport; options are a soft device's", on, word)
		case name == "tcp":
			t.at = func(addr string) registration.Transport { return registration.TCP{Addr: addr} }
		case name == "udp":
			t.at = func(addr string) registration.Transport { return quicudp.UDP{Addr: addr} }
		default:
			if t.addr, err = deviceAddr(name); err != nil {
				return nil, err
			}
			t.at = func(addr string) registration.Transport { return registration.Kernel{Addr: addr} }
		}
		if seen[name] {
			return nil, cli.Usagef("--on %q names %s twice", on, name)
		}
		seen[name] = true
		list = append(list, t)
	}
	return list, nil
}

// deviceAddr is the address of a device of the kernel.
func deviceAddr(name string) (string, error) {
	devices, err := uapi.Devices()
	if err != nil {
		return "", err
	}
	var there []string
	for _, d := range devices {
		if d.Kind != "host" {
			continue
		}
		if d.Name == name && d.Address.Addr().IsValid() {
			return d.Address.Addr().Unmap().String(), nil
		}
		there = append(there, d.Name)
	}
	if len(there) == 0 {
		there = []string{"none"}
	}
	return "", fmt.Errorf("--on: no device %q of the kernel; there is %s, and tcp, udp, soft: %w", name, strings.Join(there, ", "), syscall.ENODEV)
}

// open opens the registration of t at an address.
func (t transport) open(ctx context.Context, addr string, config *tls.Config) (*registration.Registration, error) {
	if t.addr != "" {
		addr = t.addr
	}
	return registration.Open(ctx, registration.Config{
		Name: t.word, Transport: t.at(addr), TLS: config, DialOnly: len(config.Certificates) == 0,
		Streams: qmux.Config{EnableDatagrams: true},
	})
}

// protocol is the ALPN protocol of TLS.
const protocol = "rdmashim-sample"

func clientTLS() *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}, MinVersion: tls.VersionTLS13}
}
