//go:build linux || darwin

package conform

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// abiFileTests are cases of ioctl, of the device files and of the attributes in
// sysfs.
var abiFileTests = []test{
	onFile("abi/ioctl-header", func(r *rig, w *raw) {
		core := func() []abi.IoctlAttr {
			return []abi.IoctlAttr{attr(abi.AttrCoreIn, 8, 0), attr(abi.AttrWriteCmd, 8, uint64(abi.CmdQueryDevice)), attr(abi.AttrCoreOut, 176, w.addr+rawOut)}
		}
		try := func(what string, edit func(*abi.IoctlHdr)) {
			r.result(what, w.ioctl(abi.ObjectDevice, abi.MethodInvokeWrite, edit, core()...))
		}
		try("good", nil)
		try("another driver", func(h *abi.IoctlHdr) { h.DriverID = abi.DriverMLX5 })
		try("another object", func(h *abi.IoctlHdr) { h.ObjectID = 77 })
		try("another method", func(h *abi.IoctlHdr) { h.MethodID = 77 })
		try("reserved field", func(h *abi.IoctlHdr) { h.Reserved1 = 1 })
		try("second reserved field", func(h *abi.IoctlHdr) { h.Reserved2 = 1 })
		try("fewer attributes than its length", func(h *abi.IoctlHdr) { h.NumAttrs-- })
		try("shorter than its attributes", func(h *abi.IoctlHdr) { h.Length -= 16 })
	}),
	onFile("abi/ioctl-attributes", func(r *rig, w *raw) {
		in, cmd, out := attr(abi.AttrCoreIn, 8, 0), attr(abi.AttrWriteCmd, 8, uint64(abi.CmdQueryDevice)), attr(abi.AttrCoreOut, 176, w.addr+rawOut)
		try := func(what string, attrs ...abi.IoctlAttr) {
			r.result(what, w.ioctl(abi.ObjectDevice, abi.MethodInvokeWrite, nil, attrs...))
		}
		unknown := attr(0x77, 8, 0)
		try("an unknown one", in, cmd, out, unknown)
		unknown.Flags = 0
		try("an unknown one that is optional", in, cmd, out, unknown)
		try("one twice", in, cmd, cmd, out)
		try("no command", in, out)
		short := cmd
		short.Len = 4
		try("a command of 4 bytes", in, short, out)
		reserved := cmd
		reserved.AttrData = 1
		try("reserved field", in, reserved, out)
		try("no response", in, cmd)
		try("no request", cmd, out)
		try("in another order", out, cmd, in)
	}),
	onFile("abi/gid-table", func(r *rig, w *raw) {
		table := func(what string, entry, flags uint64, room int) {
			clear(w.mem[rawOut : rawOut+8])
			err := w.ioctl(abi.ObjectDevice, abi.MethodQueryGIDTable, nil,
				attr(abi.AttrQueryGIDTableEntrySize, 8, entry), attr(abi.AttrQueryGIDTableFlags, 4, flags),
				attr(abi.AttrQueryGIDTableRespEntries, room, w.addr+rawUHW), attr(abi.AttrQueryGIDTableRespNumEntries, 8, w.addr+rawOut))
			r.say("%s: %s, any: %t", what, errText(err), le.Uint64(w.mem[rawOut:]) > 0)
		}
		table("good", abi.GIDEntrySize, 0, 32*abi.GIDEntrySize)
		table("small entries", 16, 0, 1024)
		table("no entry size", 0, 0, 1024)
		table("large entries", 64, 0, 1024)
		table("flags", abi.GIDEntrySize, 1, 1024)
		table("room for none", abi.GIDEntrySize, 0, 0)
	}),
	onFile("abi/gid-entry", func(r *rig, w *raw) {
		entry := func(what string, port, index, flags uint64, portLen int) {
			err := w.ioctl(abi.ObjectDevice, abi.MethodQueryGIDEntry, nil,
				attr(abi.AttrQueryGIDEntryPort, portLen, port), attr(abi.AttrQueryGIDEntryGIDIndex, 8, index),
				attr(abi.AttrQueryGIDEntryFlags, 4, flags), attr(abi.AttrQueryGIDEntryRespEntry, abi.GIDEntrySize, w.addr+rawOut))
			r.result(what, err)
		}
		entry("good", 1, 0, 0, 8)
		entry("an empty one", 1, 1000, 0, 8)
		entry("beyond the table", 1, 5000, 0, 8)
		entry("another port", 2, 0, 0, 8)
		entry("flags", 1, 0, 1, 8)
		entry("a port of 4 bytes", 1, 0, 0, 4)
	}),
	onFile("abi/closed", func(r *rig, w *raw) {
		r.result("Close", w.f.Close())
		r.result("Close", w.f.Close())
		r.result("write", w.write(abi.CmdQueryDevice, &abi.QueryDevice{}, 8, 44))
		r.result("ioctl", w.ioctl(abi.ObjectDevice, abi.MethodQueryContext, nil))
		r.result("mmap", errOf(w.f.Mmap(0, 4096)))
		r.result("read", errOf(w.f.Read(context.Background(), make([]byte, 16))))
	}),
	onFile("abi/read-the-device-file", func(r *rig, w *raw) {
		r.result("read", errOf(w.f.Read(context.Background(), make([]byte, 16))))
	}),
	onFile("abi/adopt", func(r *rig, w *raw) {
		r.result("no descriptor", errOf(w.k.Adopt(9999)))
		r.result("a negative one", errOf(w.k.Adopt(-1)))
		fd, _ := w.channel()
		r.result("a channel a second time", errOf(w.k.Adopt(fd)))
	}),
	{"abi/open", func(r *rig) {
		k := r.process(0)
		for _, name := range []string{"/dev/infiniband/uverbs99", "/sys/class/infiniband_verbs/nothing", "/sys/class/infiniband/nothing/node_type"} {
			r.result(name, errOf(k.Open(name)))
		}
		r.result("a directory that is not there", errOf(k.ReadDir("/sys/class/infiniband/nothing")))
	}},
	{"abi/attributes", func(r *rig) {
		k := r.process(0)
		device := "/sys/class/infiniband/" + r.sys.device[0]
		text := func(name string) string {
			got, err := readAttribute(k, name)
			if err != nil && !errors.Is(err, io.EOF) {
				return errText(err)
			}
			return strings.TrimSpace(got)
		}
		r.say("abi_version: %s", text("/sys/class/infiniband_verbs/abi_version"))
		r.say("node_type: %s", text(device+"/node_type"))
		r.say("ports/1/state: %s", text(device+"/ports/1/state"))
		r.say("ports/1/phys_state: %s", text(device+"/ports/1/phys_state"))
		r.say("ports/1/link_layer: %s", text(device+"/ports/1/link_layer"))
		r.say("ports/1/gid_attrs/types/0: %s", text(device+"/ports/1/gid_attrs/types/0"))
		r.say("ports/1/pkeys/0: %s", text(device+"/ports/1/pkeys/0"))
		r.say("node_guid has four groups: %t", strings.Count(text(device+"/node_guid"), ":") == 3)
		r.say("the first GID has eight groups: %t", strings.Count(text(device+"/ports/1/gids/0"), ":") == 7)
		names, err := k.ReadDir(device + "/ports")
		r.say("ports: %v, %s", names, errText(err))
	}},
}
