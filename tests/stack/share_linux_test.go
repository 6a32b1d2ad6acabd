package stack

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/tests/child"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/netns"
	"github.com/rdmashim/rdmashim/uapi"
)

// serveAt marks the run of this test binary as a server: the addresses to
// listen on.
const serveAt = "RDMASHIM_TEST_SERVE"

// TestServeHelper is the program that the tests below start: it listens at the
// addresses, accepts everything with its first address as private data, and
// echoes one message of each connection. It ends when its standard input does.
func TestServeHelper(t *testing.T) {
	addrs := strings.Fields(os.Getenv(serveAt))
	if len(addrs) == 0 {
		return
	}
	var last *uapi.Listener
	for _, addr := range addrs {
		l, err := uapi.Listen(addr, uapi.ListenConfig{})
		if err != nil {
			fmt.Println("refused:", err)
			return
		}
		defer l.Close()
		last = l
		go echoAll(l, addr)
	}
	open := uapi.AllStats()
	fmt.Println("listening", last.Addr(), "on", open[len(open)-1].Device)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func echoAll(l *uapi.Listener, name string) {
	for {
		r, err := l.Accept(context.Background())
		if err != nil {
			return
		}
		go echoOnce(r, name)
	}
}

func echoOnce(r *uapi.Request, name string) {
	d := r.Device
	qp, err := r.CreateQPWith(uapi.QPConfig{})
	if err != nil {
		return
	}
	defer d.DestroyQP(qp)
	buf := make([]byte, 64)
	mr, err := d.RegMR(buf, uapi.AccessLocalWrite)
	if err != nil {
		return
	}
	if _, err = d.PostRecv(qp, mr, 0, 64); err == nil {
		_, err = r.Accept(context.Background(), []byte(name))
	}
	wc := make([]uapi.WC, 1)
	if err == nil {
		if _, err = d.WaitCQ(context.Background(), qp, wc); err == nil && wc[0].Status == uapi.WCSuccess {
			_, _ = d.PostSend(qp, mr, uint64(wc[0].ByteLen))
		}
	}
	<-d.Done(qp)
}

// server is such a process.
type server struct {
	child.Helper
	said  string
	ended bool
}

// serve starts one and waits until it listens or is refused.
func serve(t *testing.T, addrs string) *server {
	t.Helper()
	s := &server{Helper: child.Start(t, serveAt+"="+addrs, "-test.run=^TestServeHelper$")}
	t.Cleanup(func() { s.end(t, false) })
	line := must.Get(s.Out.ReadString('\n'))(t)
	s.said = strings.TrimSpace(line)
	return s
}

// end ends it, by a signal that it cannot see or in order.
func (s *server) end(t *testing.T, kill bool) {
	if s.ended {
		return
	}
	s.ended = true
	if kill {
		require.NoError(t, s.Process.Kill())
	}
	s.In.Close()
	err := s.Wait()
	if !kill {
		require.NoError(t, err)
	}
}

// reached dials addr on c, sends a message and gets it back; it returns the
// name of the process that accepted.
func reached(t *testing.T, d *uapi.Device, addr string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	buf := make([]byte, 64)
	mr, err := d.RegMR(buf, uapi.AccessLocalWrite)
	require.NoError(t, err)
	defer d.DeregMR(mr)
	var qp uapi.QP
	for again := true; again; { // while one process takes the port over from another
		qp, err = d.Dial(ctx, addr, uapi.DialConfig{Prepare: func(qp uapi.QP) error {
			_, err := d.PostRecv(qp, mr, 32, 32)
			return err
		}})
		var rejected *uapi.RejectError
		again = errors.Is(err, uapi.ErrRefused) && !errors.As(err, &rejected) && ctx.Err() == nil
	}
	require.NoError(t, err)
	defer d.DestroyQP(qp)
	info := must.Get(d.QueryConn(qp))(t)
	require.Equal(t, addr, info.RemoteAddr.String())
	copy(buf, "over there")
	must.Get(d.PostSend(qp, mr, 10))(t)
	wc := make([]uapi.WC, 2)
	for n := 0; n < 2; {
		got := must.Get(d.WaitCQ(ctx, qp, wc))(t)
		for _, w := range wc[:got] {
			require.Equal(t, uapi.WCSuccess, w.Status)
		}
		n += got
	}
	require.Equal(t, "over there", string(buf[32:42]))
	return strings.TrimRight(string(info.PrivateData), "\x00")
}

// client opens a device as a client of addr does.
func client(t *testing.T, addr string) *uapi.Device {
	t.Helper()
	d := must.Get(uapi.OpenRoute(t.Context(), addr, uapi.OpenConfig{}))(t)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// TestClientFirst: a client that dials an address of this host before a program
// listens there leaves it free: of 127.0.0.1, of ::1, which is the only one of
// its kind, and of an interface.
func TestClientFirst(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	addAddr(t, "10.77.0.1")
	for _, host := range []string{"127.0.0.1", "127.0.0.5", "[::1]", "10.77.0.1"} {
		addr := host + ":7000"
		d := client(t, addr)
		require.NotEqual(t, host+":4791", addrOf(t, d).String())
		_, err := d.Dial(t.Context(), addr, uapi.DialConfig{})
		require.ErrorIs(t, err, uapi.ErrRefused)
		require.ErrorContains(t, err, "nothing has UDP port 4791")
		s := serve(t, addr)
		require.Equal(t, "listening "+addr+" on soft:"+host, s.said, "the server has the address whole")
		require.Equal(t, addr, reached(t, d, addr))
		require.Equal(t, addr, reached(t, client(t, addr), addr), "a second device of the process")
		s.end(t, false)
	}
}

// addrOf is where the device answers.
func addrOf(t *testing.T, d *uapi.Device) netip.AddrPort {
	t.Helper()
	info := must.Get(d.QueryDevice())(t)
	return info.Address
}

// addAddr gives lo an address that is no loopback address.
func addAddr(t *testing.T, addr string) {
	t.Helper()
	fd := must.Get(unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0))(t)
	defer unix.Close(fd)
	ifr := must.Get(unix.NewIfreq("lo:1"))(t)
	require.NoError(t, ifr.SetInet4Addr(netip.MustParseAddr(addr).AsSlice()))
	require.NoError(t, unix.IoctlIfreq(fd, unix.SIOCSIFADDR, ifr))
}

// TestServersShareAddress: processes listen on different ports of one address.
// The first has UDP port 4791, the others are found through it; each port is
// one process's; when the first ends, in order or killed, another takes its
// place, and a process that comes back is found as before.
func TestServersShareAddress(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	for _, host := range []string{"127.0.0.1", "[::1]"} {
		t.Run(host, func(t *testing.T) {
			at := func(port int) string { return fmt.Sprintf("%s:%d", host, port) }
			d := client(t, at(7001))
			first := serve(t, at(7001))
			require.Contains(t, first.said, "on soft:"+host)
			require.NotContains(t, first.said, "port=")
			second := serve(t, at(7002)+" "+at(7012))
			require.Contains(t, second.said, "port=")
			third := serve(t, at(7003))
			check := func(ports ...int) {
				t.Helper()
				for _, p := range ports {
					require.Equal(t, at(p), reached(t, d, at(p)))
				}
			}
			check(7001, 7002, 7012, 7003)

			// A port is one process's, owner or not, and the holder is named.
			for port, holder := range map[int]*server{7001: first, 7002: second} {
				s := serve(t, at(port))
				require.Contains(t, s.said, "refused:")
				require.Contains(t, s.said, fmt.Sprintf("port %d is taken by process %d (", port, holder.Process.Pid))
				require.Contains(t, s.said, "address already in use")
				require.Equal(t, 1, strings.Count(s.said, "in use"), s.said)
			}
			_, err := d.Dial(t.Context(), at(7009), uapi.DialConfig{})
			require.ErrorIs(t, err, uapi.ErrRefused, "nobody has it")
			require.ErrorContains(t, err, "nobody listens there")

			first.end(t, true)
			check(7002, 7012, 7003)
			first = serve(t, at(7001))
			check(7001, 7002, 7003)
			second.end(t, false)
			check(7001, 7003)
			_, err = d.Dial(t.Context(), at(7002), uapi.DialConfig{})
			require.ErrorIs(t, err, uapi.ErrRefused)
			third.end(t, true)
			check(7001)
			first.end(t, false)
			free, err := uapi.Open("soft:"+host, uapi.OpenConfig{})
			require.NoError(t, err, "nothing is left")
			require.NoError(t, free.Close())
		})
	}
}

// TestShareStranger: an address of another user, or of a program that is none
// of ours, is not shared, and the error names the holder. A stranger at the
// portMapper is not heard.
func TestShareStranger(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	c := must.Get(net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:4791"))))(t)
	_, err := uapi.Listen("127.0.0.1:7000", uapi.ListenConfig{})
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.ErrorContains(t, err, fmt.Sprintf("taken by process %d (", os.Getpid()))
	require.NoError(t, c.Close())

	owner := must.Get(uapi.Open("soft:127.0.0.1", uapi.OpenConfig{}))(t)
	defer owner.Close()
	asStranger := exec.Command("/proc/self/exe", "-test.run=^TestStrangerHelper$")
	asStranger.Env = append(os.Environ(), serveAt+"=", "RDMASHIM_TEST_STRANGER=1")
	asStranger.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534, NoSetGroups: true}}
	text, err := asStranger.CombinedOutput()
	if err != nil && os.Getenv("CI") != "true" {
		t.Skipf("no other user to be had; run as root: %v %s", err, text)
	}
	require.NoError(t, err, "%s", text)
	require.Contains(t, string(text), "heard 0 bytes")
	require.Contains(t, string(text), "address already in use")
}

// TestStrangerHelper is another user's program.
func TestStrangerHelper(t *testing.T) {
	if os.Getenv("RDMASHIM_TEST_STRANGER") == "" {
		return
	}
	c := must.Get(net.Dial("unix", portMapper("127.0.0.1")))(t)
	defer c.Close()
	_, _ = fmt.Fprintln(c, "listen 17301504 40000")
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	n, err := c.Read(make([]byte, 64))
	fmt.Println("heard", n, "bytes", err)
	_, err = uapi.Listen("127.0.0.1:7000", uapi.ListenConfig{})
	fmt.Println(err)
}

// portMapper is the socket at which the owner of an address notes the services
// of other processes.
func portMapper(host string) string { return "@rdmashim/" + host + ":4791" }

// TestPortMapperHostile: the port mapper answers any message of the user's
// processes or hangs up, and a process's services go with its connection.
func TestPortMapperHostile(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	for _, host := range []string{"127.0.0.1", "[::1]"} {
		t.Run(host, func(t *testing.T) { portMapperHostile(t, host) })
	}
}

func portMapperHostile(t *testing.T, host string) {
	owner := must.Get(uapi.Open("soft:"+host, uapi.OpenConfig{}))(t)
	defer owner.Close()
	say := func(lines ...string) (answers []string) {
		c := must.Get(net.Dial("unix", portMapper(host)))(t)
		defer c.Close()
		in := bufio.NewScanner(c)
		for _, l := range lines {
			if _, err := fmt.Fprintln(c, l); err != nil || !in.Scan() {
				return append(answers, "hung up")
			}
			answers = append(answers, in.Text())
		}
		return answers
	}
	require.Equal(t, []string{"no", "no", "no", "no", "no", "ok"},
		say("", "listen", "listen x y", "listen 17301504 4791", "listen 17301504 70000", "end 5"))
	require.Equal(t, []string{"hung up"}, say(strings.Repeat("x", 1000)))
	taken := fmt.Sprintf("taken %d", os.Getpid())
	require.Equal(t, []string{"ok", taken, "ok", "ok"}, say("listen 17301505 40000", "listen 17301505 40001", "end 17301505", "listen 17301505 40001"))
	l := must.Get(owner.Listen(host+":9000", uapi.ListenConfig{}))(t)
	defer l.Close()
	require.Equal(t, []string{taken}, say(fmt.Sprintf("listen %d 40000", 0x01060000+9000)))
	require.Eventually(t, func() bool { return say("listen 17301505 40000")[0] == "ok" }, 10*time.Second, time.Millisecond, "the visit before has ended")

	// A process that holds all places is in the way of none but itself.
	child.Hold(t, 64+10, "unix", portMapper(host))
	require.Equal(t, []string{"ok"}, say("end 1"))
}

// TestPortMapperMoves: a process whose connection to the port mapper broke says
// its services on another one before the end of the first is seen, as when the
// owner was stopped for a while. They stay until that one ends, too.
func TestPortMapperMoves(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	owner := must.Get(uapi.Open("soft:127.0.0.1", uapi.OpenConfig{}))(t)
	defer owner.Close()
	say := func(c net.Conn, line string) string {
		must.Get(fmt.Fprintln(c, line))(t)
		answer := must.Get(bufio.NewReader(c).ReadString('\n'))(t)
		return strings.TrimSpace(answer)
	}
	visit := func() net.Conn {
		c := must.Get(net.Dial("unix", portMapper("127.0.0.1")))(t)
		t.Cleanup(func() { c.Close() })
		return c
	}
	const listen, end = "listen 17301505 40000", "end 17301505"
	first, second := visit(), visit()
	require.Equal(t, "ok", say(first, listen))
	require.Equal(t, "ok", say(second, listen))
	require.Equal(t, "ok", say(first, listen), "said before the second")
	require.Equal(t, "ok", say(first, end))
	taken := fmt.Sprintf("taken %d", os.Getpid())
	require.Equal(t, taken, say(visit(), "listen 17301505 40001"), "the second has it")
	require.Equal(t, "ok", say(second, end))
	require.Equal(t, "ok", say(visit(), "listen 17301505 40001"))
}

// TestDialThenListen: a process that dialled can listen like
// another, on the address that it dialled too, and the other way round; Close
// ends all.
func TestDialThenListen(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	s := serve(t, "127.0.0.1:7001")
	dialler := must.Get(uapi.OpenRoute(t.Context(), "127.0.0.1:7001", uapi.OpenConfig{}))(t)
	defer dialler.Close()
	qp := must.Get(dialler.Dial(t.Context(), "127.0.0.1:7001", uapi.DialConfig{}))(t)
	for _, addr := range []string{"127.0.0.1:7002", "127.0.0.9:7002"} {
		l := must.Get(uapi.Listen(addr, uapi.ListenConfig{}))(t)
		go echoAll(l, addr)
		d := client(t, addr)
		got := must.Get(d.Dial(t.Context(), addr, uapi.DialConfig{}))(t)
		require.NoError(t, d.DestroyQP(got))
	}
	_, err := uapi.Listen("127.0.0.1:7001", uapi.ListenConfig{})
	require.ErrorContains(t, err, fmt.Sprintf("taken by process %d (", s.Process.Pid))
	require.NoError(t, must.Get(dialler.Cause(qp))(t))
	any, err := uapi.Listen(":7003", uapi.ListenConfig{}) // where clients look, too
	require.NoError(t, err)
	go echoAll(any, "any")
	d := client(t, "127.0.0.1")
	for _, addr := range []string{"127.0.0.1:7003", any.Addr().String()} {
		got := must.Get(d.Dial(t.Context(), addr, uapi.DialConfig{}))(t)
		require.NoError(t, d.DestroyQP(got))
	}

	// An owner's device in the process with one beside: one of them listens.
	s.end(t, false)
	owner, err := uapi.Open("soft:127.0.0.1", uapi.OpenConfig{}) // the successor's
	require.NoError(t, err)
	l := must.Get(uapi.Listen("127.0.0.1:7005", uapi.ListenConfig{}))(t)
	other := serve(t, "127.0.0.1:7006")
	_, err = owner.Listen("127.0.0.1:7006", uapi.ListenConfig{})
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.ErrorContains(t, err, fmt.Sprintf("taken by process %d (", other.Process.Pid), "the owner knows, too")
	other.end(t, false) // it would be the next owner
	require.NoError(t, l.Close())
	require.NoError(t, owner.Close())
	require.NoError(t, uapi.Close())
	for _, a := range []string{"127.0.0.1", "127.0.0.9"} {
		c, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(a+":4791")))
		require.NoError(t, err, "nothing is left")
		c.Close()
	}
}

// TestOpenLocalBeside: an address that another process has is shared; a name is
// that device, or none.
func TestOpenLocalBeside(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	serve(t, "127.0.0.1:7000")
	d := must.Get(uapi.OpenLocal("127.0.0.1", uapi.OpenConfig{}))(t)
	require.Regexp(t, `^127\.0\.0\.1:\d+$`, addrOf(t, d).String())
	require.NotEqual(t, "127.0.0.1:4791", addrOf(t, d).String())
	require.NoError(t, d.Close())
	_, err := uapi.Open("soft:127.0.0.1", uapi.OpenConfig{})
	require.ErrorIs(t, err, syscall.EADDRINUSE)
}

// TestListenWithOptions: the options of a plain soft device in the environment
// belong to the devices that programs listen on, shared addresses included.
func TestListenWithOptions(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	serve(t, "127.0.0.1:7000")
	t.Setenv("RDMASHIM_DEVICE", "soft?delay=1ms")
	defer uapi.Close()
	for _, addr := range []string{"127.0.0.1:7001", "127.0.0.5:7001", "127.0.0.5:7002", ":7003"} {
		l, err := uapi.Listen(addr, uapi.ListenConfig{})
		require.NoError(t, err, addr)
		defer l.Close()
		to := addr
		if addr[0] == ':' {
			to = "127.0.0.1" + addr
		}
		asked := make(chan *uapi.Device, 1)
		go func() {
			if r, err := l.Accept(context.Background()); err == nil {
				asked <- r.Device
				echoOnce(r, addr)
			}
		}()
		d := must.Get(uapi.Open("soft:127.0.0.9", uapi.OpenConfig{}))(t)
		require.Equal(t, addr, reached(t, d, to))
		require.NoError(t, d.Close())
		info := must.Get((<-asked).QueryDevice())(t)
		name := info.Device + "?"
		if strings.Contains(info.Device, "?") {
			name = info.Device + "&"
		}
		same, err := uapi.Open(name+"delay=1ms", uapi.OpenConfig{})
		require.NoError(t, err, "with other options it is EINVAL")
		require.NoError(t, same.Close())
	}
	t.Setenv("RDMASHIM_DEVICE", "soft:127.0.0.1?port=5000")
	for _, addr := range []string{"127.0.0.6:7001", "192.0.2.1:7001"} {
		_, err := uapi.Listen(addr, uapi.ListenConfig{})
		require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
		require.ErrorContains(t, err, "RDMASHIM_DEVICE=soft:127.0.0.1?port=5000 is on 127.0.0.1, not ")
	}
}
