package explain

import "strconv"

// errno is Linux's, whatever system this program runs on: numbers in traces and
// messages of an RDMA program are of the kernel that it ran on.
type errno struct {
	number int
	name   string
	text   string // what strerror says
	means  string
	causes []string
	look   []string
}

var errnos = []errno{
	{1, "EPERM", "Operation not permitted", "the call needs a right that the process does not have",
		[]string{"setting up links needs CAP_NET_ADMIN, in the network namespace's owner", "the memory lock limit (ulimit -l) when a region is registered on some kernels", "raw packet queue pairs, and Q_Keys with the highest bit, need CAP_NET_RAW"},
		[]string{"id; capsh --print", "rdmashim doctor"}},
	{2, "ENOENT", "No such file or directory", "the object named is not there",
		[]string{"/dev/infiniband/uverbsN is missing: ib_uverbs is not loaded", "a handle (QP, CQ, region) that was destroyed", "rdma_cm: an id that is gone"},
		[]string{"ls /dev/infiniband; lsmod | grep ib_uverbs", "rdmashim doctor"}},
	{4, "EINTR", "Interrupted system call", "a signal came while the call waited", []string{"signals of the Go or other runtime, timers"}, []string{"the call is to be made again"}},
	{5, "EIO", "Input/output error", "the device failed, or was taken away while it was open",
		[]string{"hot removal or a fatal error of the device", "the emulator or driver answered with nonsense"}, []string{"dmesg", "the asynchronous events: rdmashim monitor"}},
	{9, "EBADF", "Bad file descriptor", "a descriptor or handle that is closed",
		[]string{"use after Close or Destroy", "two parts of the program that both close"}, []string{"the order in which the program takes things down"}},
	{11, "EAGAIN", "Resource temporarily unavailable", "nothing is there yet, or no room for now",
		[]string{"a completion channel or event file that does not block has nothing", "some drivers: a queue or table is full for now"}, []string{"wait with poll, then again"}},
	{12, "ENOMEM", "Cannot allocate memory", "no room: in a queue, in a table of the device, or in what may be locked",
		[]string{"the send or receive queue is full: completions are not polled, or nothing is signaled", "the memory lock limit is below the region's size", "more queue pairs, regions or entries than the device has"},
		[]string{"ulimit -l, /etc/security/limits.d, LimitMEMLOCK= of the unit", "limits of the device: rdmashim abi; rdmashim resource show", "unsignaled requests free their slots only with the next signaled one"}},
	{13, "EACCES", "Permission denied", "the file or the memory does not allow it",
		[]string{"no right to /dev/infiniband/uverbsN or rdma_cm", "write on the device file from a thread whose credentials changed since it was opened", "a region with remote write but without local write"},
		[]string{"ls -l /dev/infiniband; the group that the distribution gives it", "rdmashim doctor"}},
	{14, "EFAULT", "Bad address", "the memory is not there, or may not be written",
		[]string{"the region's range is not mapped, or is read-only and is registered for writing", "a file mapping that was truncated", "freed memory"},
		[]string{"/proc/PID/maps at the address", "the life of the buffer: it must outlive its region"}},
	{16, "EBUSY", "Device or resource busy", "something still uses the object",
		[]string{"a protection domain with regions or queue pairs, a CQ with queue pairs", "a link that is open, or a network device that is part of another", "an rxe link on this network device exists already"},
		[]string{"rdmashim resource show qp; … mr; … cq", "destroy in the reverse order of creation"}},
	{17, "EEXIST", "File exists", "the name or link is there already", []string{"an rxe link on this network device, or of this name, exists"}, []string{"rdmashim link show"}},
	{19, "ENODEV", "No such device", "no RDMA device of this name, or it is gone",
		[]string{"no rxe link was made, or the module is not loaded", "the device is in another network namespace (netns mode exclusive)", "the address given to rdma_cm belongs to no RDMA device", "its network device was removed"},
		[]string{"rdmashim devices; rdmashim link show", "rdmashim system show netns", "rdmashim doctor"}},
	{22, "EINVAL", "Invalid argument", "an argument is out of range, or the object's state does not allow the call",
		[]string{"MODIFY_QP: a wrong transition, or attributes missing for it (RESET → INIT → RTR → RTS)", "path MTU beyond the port's active MTU, GID index without an entry", "remote write or atomic access without local write", "posting in a state that does not allow it: sends need RTS, receives INIT", "sizes beyond the device's limits"},
		[]string{"state of the queue pair: rdmashim resource show qp", "active MTU and GID table: rdmashim devices", "limits of the device: max_qp_wr, max_sge, max_qp_rd_atom", "extended acknowledgement of netlink, and dmesg with dynamic debug of ib_core"}},
	{23, "ENFILE", "Too many open files in system", "no room for another object in a table of the kernel", []string{"an RDMA device of this name exists (link add)", "too many device names or files in the system"}, []string{"rdmashim link show", "cat /proc/sys/fs/file-nr"}},
	{24, "EMFILE", "Too many open files", "the process has no descriptor left", []string{"contexts, completion channels or listeners that are not closed"}, []string{"ulimit -n; ls /proc/PID/fd"}},
	{25, "ENOTTY", "Inappropriate ioctl for device", "the file does not know this ioctl", []string{"the file is no uverbs device", "a kernel older than 4.16"}, []string{"rdmashim version; uname -r"}},
	{28, "ENOSPC", "No space left on device", "no room in a table of the device", []string{"the GID table is full", "attached multicast groups or flows are at the limit", "some drivers: of queue pairs or keys"}, []string{"limits of the device, rdmashim resource show"}},
	{32, "EPIPE", "Broken pipe", "the other end of a control connection is gone", []string{"the peer's process ended"}, []string{"the peer's output"}},
	{34, "ERANGE", "Numerical result out of range", "a number does not fit", []string{"a configuration value beyond what the device has"}, []string{"the number that the message names"}},
	{38, "ENOSYS", "Function not implemented", "this kernel or driver does not have the call", []string{"an old kernel, or a driver without the operation", "a sandbox that forbids the system call"}, []string{"uname -r; rdmashim abi"}},
	{61, "ENODATA", "No data available", "nothing to report", []string{"counters that the device does not have", "a GID table entry that is empty"}, []string{"the index asked for"}},
	{71, "EPROTO", "Protocol error", "the two sides do not understand each other", []string{"programs of different versions", "something else listens on the port"}, []string{"rdmashim version at both ends"}},
	{75, "EOVERFLOW", "Value too large for defined data type", "more came than there was room for", []string{"a completion queue overran: completions were lost"}, []string{"the size of the CQ against all work that can be outstanding"}},
	{90, "EMSGSIZE", "Message too long", "what is to be sent does not fit",
		[]string{"the path MTU of the queue pair is not carried by the route to the peer: an interface, tunnel or VPN on the way has a smaller MTU", "an inline SEND beyond max_inline_data", "UDP: a datagram beyond the MTU with Don't Fragment set", "private data too long for the connection manager"},
		[]string{"ip route get PEER; ping -M do -s 4200 PEER", "MTU of the network device against the active MTU: rdmashim doctor", "RoCEv2 adds 44 to 84 bytes to the path MTU, IP header included: 1024 fits into 1500, 4096 needs 4180 or more"}},
	{92, "ENOPROTOOPT", "Protocol not available", "the option is not known here", []string{"rdma_cm: an option of a newer kernel"}, []string{"uname -r"}},
	{93, "EPROTONOSUPPORT", "Protocol not supported", "this device or kernel does not have the method or the driver",
		[]string{"an ioctl method that the kernel does not have", "a driver whose queues this program does not know (rdma_rxe is known)"}, []string{"rdmashim abi; rdmashim devices"}},
	{95, "EOPNOTSUPP", "Operation not supported", "the device does not have the operation",
		[]string{"an operation that the driver leaves out: shared receive queues, memory windows, multicast, changing a region", "the module of the link type is not loaded (rdma link add)", "atomics or ODP on a device without them"},
		[]string{"capabilities of the device: rdmashim abi", "modprobe rdma_rxe; rdmashim doctor"}},
	{97, "EAFNOSUPPORT", "Address family not supported by protocol", "IPv4 and IPv6 do not meet", []string{"IPv6 is turned off on this machine", "source and destination of different families"}, []string{"sysctl net.ipv6.conf.all.disable_ipv6"}},
	{98, "EADDRINUSE", "Address already in use", "somebody else has the address and port",
		[]string{"UDP 4791 is held by rdma_rxe (as soon as it is loaded) or another soft device on this address", "a program already listens on this port of rdma_cm", "a former life of the server in another process"},
		[]string{"ss -ulnp 'sport = :4791'; rdmashim resource show cm_id", "plain 'soft' takes a free address or port by itself"}},
	{99, "EADDRNOTAVAIL", "Cannot assign requested address", "the address is not one of this machine, or not of this device",
		[]string{"a typing error, or an address that is not configured yet", "the address is in another network namespace", "the GID of this address is not in the table of the device"},
		[]string{"ip address; rdmashim devices"}},
	{100, "ENETDOWN", "Network is down", "the network device is down", []string{"the interface was not brought up"}, []string{"ip link set DEV up"}},
	{101, "ENETUNREACH", "Network is unreachable", "no route leads to the peer", []string{"no route, or a source address that no route takes", "the network namespace has no interface but lo, which is down"}, []string{"ip route get PEER from SOURCE"}},
	{103, "ECONNABORTED", "Software caused connection abort", "the connection ended before it was taken", []string{"who asked for it gave up while the request waited"}, []string{"the time between the request and Accept"}},
	{104, "ECONNRESET", "Connection reset by peer", "the peer ended the connection", []string{"it disconnected, or its process ended"}, []string{"the peer's output; DREQ in rdmashim dump"}},
	{105, "ENOBUFS", "No buffer space available", "no room in a buffer of the kernel", []string{"a netlink reader that is too slow", "a socket's queue is full"}, []string{"net.core.rmem_max, net.core.wmem_max"}},
	{106, "EISCONN", "Transport endpoint is already connected", "it is connected already", []string{"connecting a queue pair or id twice"}, []string{"the order of calls"}},
	{107, "ENOTCONN", "Transport endpoint is not connected", "it is not connected, or no more", []string{"the connection ended, or was not made yet"}, []string{"the events of the connection"}},
	{110, "ETIMEDOUT", "Connection timed out", "the peer did not answer in time",
		[]string{"the peer is gone or unreachable", "UDP 4791 is filtered, in one direction too", "no RDMA device is at that address, or it is in another namespace", "a keepalive found an idle peer silent"},
		[]string{"rdmashim doctor", "rdmashim dump --live IFACE, at both ends", "firewall and NAT on the path"}},
	{111, "ECONNREFUSED", "Connection refused", "the peer's machine answers, and nobody listens there or the program refused",
		[]string{"the server was not started, or listens on another port, address or device", "the program rejected the request: reason and private data are in the error"},
		[]string{"rdmashim resource show cm_id, at the peer", "rdmashim explain reject 8; … reject 28"}},
	{113, "EHOSTUNREACH", "No route to host", "no way to the peer, or it does not answer ARP", []string{"the peer is off, or in another VLAN or namespace", "a firewall that says so"}, []string{"ip neigh show PEER; ping PEER"}},
}

func errnoList() (list []Entry) {
	for _, e := range errnos {
		entry := Entry{Kind: Errno, Name: e.name, Number: e.number, Also: []string{e.text, strconv.Itoa(-e.number)}, Means: e.means, Causes: e.causes, Look: e.look}
		switch e.name {
		case "EAGAIN":
			entry.Also = append(entry.Also, "EWOULDBLOCK")
		case "EOPNOTSUPP":
			entry.Also = append(entry.Also, "ENOTSUP")
		}
		list = append(list, entry)
	}
	return list
}
