package rdmanet_test

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"testing"

	"github.com/rdmashim/rdmashim/tests/leak"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/rdmanet"
)

// asPeer in the environment makes the test binary a peer in a process of its
// own: one of the roles, or the address that a writer dials.
const asPeer = "RDMANET_TEST_PEER"

const (
	echoByte = "echo" // echoes a byte of each connection
	write    = "write"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(asPeer); role != "" {
		bePeer(role)
		return
	}
	leak.Main(m)
}

// bePeer does nothing more with a connection than its role says. It ends with
// its standard input.
func bePeer(role string) {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	if role != echoByte && role != write {
		var d rdmanet.Dialer
		c, err := d.Dial("rdma", role)
		if err != nil {
			fmt.Println(err)
			return
		}
		writeOn(c)
		return
	}
	l, err := listen()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(l.Addr())
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		if role == write {
			writeOn(c)
		}
		_, _ = io.CopyN(c, c, 1)
	}
}

// listen listens on the real device, else at an address of its own: of two
// processes that open one at the same moment, one may fail.
func listen() (*rdmanet.Listener, error) {
	if realDevice == "" {
		own := fmt.Sprintf("127.101.%d.%d:0", os.Getpid()>>8&0xff, os.Getpid()&0xff)
		return rdmanet.Listen(own, rdmanet.Config{})
	}
	device, err := uapi.Open(realDevice, uapi.OpenConfig{})
	if err != nil {
		return nil, err
	}
	info, err := device.QueryDevice()
	if err != nil {
		return nil, err
	}
	return rdmanet.ListenOn(device, netip.AddrPortFrom(info.Address.Addr(), 0).String(), rdmanet.Config{})
}

// writeOn writes the bytes that pattern tells for ever, and reads nothing.
func writeOn(c net.Conn) {
	p := make([]byte, 5000)
	for at := 0; ; at += len(p) {
		for i := range p {
			p[i] = pattern(at + i)
		}
		if _, err := c.Write(p); err != nil {
			return
		}
	}
}

func pattern(at int) byte { return byte(at % 251) }
