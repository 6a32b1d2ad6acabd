package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"golang.org/x/sys/unix"
)

const (
	captureBuffer = 16 << 20
	captureQuiet  = 200_000 // µs without a packet that end a capture
)

// unloadModule takes a module out of the kernel.
func unloadModule(name string) error {
	if err := unix.DeleteModule(name, unix.O_NONBLOCK); err != nil {
		return fmt.Errorf("unload %s: %w", name, err)
	}
	return nil
}

// captureNetdev writes all frames of a network device to w, as they pass, until stop is called and no more come.
func captureNetdev(name string, w io.Writer) (stop func() error, err error) {
	dev, err := net.InterfaceByName(name)
	if err != nil {
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	all := uint16(unix.ETH_P_ALL)
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, captureBuffer)
	err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: captureQuiet})
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all<<8 | all>>8, Ifindex: dev.Index})
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	out := bufio.NewWriter(w)
	file := pcapgo.NewWriter(out)
	quit, done := make(chan struct{}), make(chan error, 1)
	go func() {
		err := file.WriteFileHeader(1<<16, layers.LinkTypeEthernet)
		buf := make([]byte, 1<<16)
		for err == nil {
			var n int
			n, _, err = unix.Recvfrom(fd, buf, 0)
			switch err {
			case nil:
				err = file.WritePacket(gopacket.CaptureInfo{Timestamp: time.Now(), CaptureLength: n, Length: n}, buf[:n])
			case unix.EINTR:
				err = nil
			case unix.EAGAIN:
				err = nil
				select {
				case <-quit:
					done <- out.Flush()
					return
				default:
				}
			}
		}
		done <- err
	}()
	return func() error {
		close(quit)
		err := <-done
		unix.Close(fd)
		return err
	}, nil
}
