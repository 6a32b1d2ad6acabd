package netlinkmgr

import (
	"context"
	"os"
	"sync"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// listener is a multicast group of a netlink protocol, as a bit of a socket's
// address.
type listener struct {
	protocol int
	groups   uint32
	source   EventSource
}

var (
	links         = listener{unix.NETLINK_ROUTE, 1 << (unix.RTNLGRP_LINK - 1), SourceLink}
	uevents       = listener{unix.NETLINK_KOBJECT_UEVENT, 1 << 0, SourceUevent} // the kernel's own; 2 is udev's
	notifications = listener{unix.NETLINK_RDMA, 1 << (4 - 1), SourceRDMA}       // RDMA_NL_GROUP_NOTIFY
)

// listenBuffer is the room for messages that come while events are told, in
// bytes.
const listenBuffer = 1 << 20

// listen opens a socket for each source of notices.
func listen(ctx context.Context, notified bool) (<-chan Notice, error) {
	devices := uevents
	if notified {
		devices = notifications
	}
	out := make(chan Notice)
	send := func(n Notice) {
		select {
		case out <- n:
		case <-ctx.Done():
		}
	}
	first, err := links.open()
	if err != nil {
		return nil, err
	}
	second, err := devices.open()
	if err != nil {
		first.Close()
		return nil, err
	}
	var all sync.WaitGroup
	all.Go(func() { links.receive(first, send) })
	all.Go(func() { devices.receive(second, send) })
	context.AfterFunc(ctx, func() { first.Close(); second.Close() })
	go func() {
		all.Wait()
		close(out)
	}()
	return out, nil
}

func (l listener) open() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, l.protocol)
	if err != nil {
		return nil, err
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, listenBuffer)
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: l.groups}); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "netlink"), nil
}

// receive hands on the kernel's messages until the file is closed. Others than
// the kernel (port 0) are not believed.
func (l listener) receive(f *os.File, send func(Notice)) {
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	buf := make([]byte, 64<<10)
	for {
		var n int
		var from unix.Sockaddr
		var err error
		closed := raw.Read(func(fd uintptr) bool {
			n, from, err = unix.Recvfrom(int(fd), buf, 0)
			return err != unix.EAGAIN && err != unix.EINTR
		})
		if closed != nil {
			return
		}
		if err != nil {
			if send(Notice{Source: l.source, Err: err}); err != unix.ENOBUFS {
				return
			}
		} else if sender, ok := from.(*unix.SockaddrNetlink); ok && sender.Pid == 0 {
			l.notices(buf[:n], send)
		}
	}
}

func (l listener) notices(b []byte, send func(Notice)) {
	if l.source == SourceUevent {
		send(Notice{Source: l.source, Message: append([]byte(nil), b...)})
		return
	}
	messages, _ := syscall.ParseNetlinkMessage(b)
	for _, m := range messages {
		switch {
		case l.source == SourceRDMA && m.Header.Type == (Request{Command: "MONITOR"}).Type():
			send(Notice{Source: l.source, Message: append([]byte(nil), m.Data...)})
		// A bridge tells of its ports with messages of its own family.
		case l.source == SourceLink && m.Header.Type == unix.RTM_NEWLINK && len(m.Data) > 0 && m.Data[0] == unix.AF_UNSPEC:
			header := unix.NlMsghdr(m.Header)
			if link, err := netlink.LinkDeserialize(&header, m.Data); err == nil {
				d := netDev(link)
				send(Notice{Source: l.source, Link: &d})
			}
		}
	}
}
