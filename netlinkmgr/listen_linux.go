package netlinkmgr

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Multicast groups, as bits of a socket's address: ueventGroup is the kernel's
// own (2 is udev's), notifyGroup RDMA_NL_GROUP_NOTIFY.
const (
	ueventGroup = 1 << 0
	notifyGroup = 1 << (4 - 1)
	linkGroups  = 1<<(unix.RTNLGRP_LINK-1) | 1<<(unix.RTNLGRP_IPV4_IFADDR-1) | 1<<(unix.RTNLGRP_IPV6_IFADDR-1)
)

// listenBuffer holds what comes while the manager looks, in bytes.
const listenBuffer = 1 << 20

// listen opens a socket for each source of notices.
func listen(ctx context.Context, rdma bool) (<-chan Notice, []string, error) {
	sources := []listener{
		{protocol: unix.NETLINK_ROUTE, groups: linkGroups, what: "messages about network devices and addresses (RTNETLINK)", notice: linkNotices},
		{protocol: unix.NETLINK_KOBJECT_UEVENT, groups: ueventGroup, what: "kernel uevents", notice: ueventNotice},
	}
	if rdma {
		sources = append(sources, listener{protocol: unix.NETLINK_RDMA, groups: notifyGroup, what: "RDMA notifications (RDMA_NLDEV_CMD_MONITOR)", notice: rdmaNotices})
	}
	var files []*os.File
	var heard []string
	for _, s := range sources {
		f, err := s.open()
		if err != nil {
			for _, f := range files {
				f.Close()
			}
			return nil, nil, fmt.Errorf("%s: %w", s.what, err)
		}
		files, heard = append(files, f), append(heard, s.what)
	}
	out := make(chan Notice)
	send := func(n Notice) {
		select {
		case out <- n:
		case <-ctx.Done():
		}
	}
	var all sync.WaitGroup
	for i, f := range files {
		all.Go(func() { sources[i].receive(f, send) })
		context.AfterFunc(ctx, func() { f.Close() })
	}
	go func() {
		all.Wait()
		close(out)
	}()
	return out, heard, nil
}

// listener is a source of notices.
type listener struct {
	protocol int
	groups   uint32
	what     string
	notice   func([]byte) []Notice
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

// receive hands on what the kernel sends until the file is closed. Others than
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
		switch sender, ok := from.(*unix.SockaddrNetlink); {
		case closed != nil:
			return
		case err == unix.ENOBUFS:
			send(Notice{Err: fmt.Errorf("%s: too many at once, some were lost: %w", l.what, err)})
		case err != nil:
			send(Notice{Err: fmt.Errorf("%s: %w", l.what, err)})
			return
		case ok && sender.Pid == 0:
			for _, x := range l.notice(buf[:n]) {
				send(x)
			}
		}
	}
}

func ueventNotice(b []byte) []Notice { return []Notice{{Uevent: append([]byte(nil), b...)}} }

func rdmaNotices(b []byte) (list []Notice) {
	messages, _ := syscall.ParseNetlinkMessage(b)
	for _, m := range messages {
		if m.Header.Type == nldevClient<<clientShift|uint16(CmdMonitor) {
			list = append(list, Notice{RDMA: append([]byte(nil), m.Data...)})
		}
	}
	return list
}

func linkNotices(b []byte) (list []Notice) {
	messages, _ := syscall.ParseNetlinkMessage(b)
	for _, m := range messages {
		switch m.Header.Type {
		case unix.RTM_NEWADDR, unix.RTM_DELADDR:
			list = append(list, Notice{Addr: true})
		case unix.RTM_NEWLINK, unix.RTM_DELLINK:
			header := unix.NlMsghdr(m.Header)
			// A bridge tells of its ports with messages of its own family.
			if len(m.Data) == 0 || m.Data[0] != unix.AF_UNSPEC {
				continue
			}
			if l, err := netlink.LinkDeserialize(&header, m.Data); err == nil {
				d := netDev(l)
				list = append(list, Notice{Link: &d, Gone: m.Header.Type == unix.RTM_DELLINK})
			}
		}
	}
	return list
}
