//go:build linux || darwin

package conform

import (
	"bytes"
	"context"
	"path"
	"strconv"
	"strings"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/tests/must"
)

// sysfsNames are all attributes of an rxe device, but for links and for what
// other modules than its own hang there (ib_cm its counts of messages). With
// "=" their text is compared too. Of tables the first and the last place stand
// for all.
var sysfsNames = []string{
	"fw_ver=", "node_desc", "node_guid", "node_type=", "parent", "sys_image_guid", "uevent",
	"power/async=", "power/control=", "power/runtime_active_kids=", "power/runtime_active_time=", "power/runtime_enabled=",
	"power/runtime_status=", "power/runtime_suspended_time=", "power/runtime_usage=", "power/autosuspend_delay_ms=",
	"ports/1/cap_mask=", "ports/1/lid_mask_count=", "ports/1/link_layer=", "ports/1/phys_state=", "ports/1/rate",
	"ports/1/sm_lid=", "ports/1/sm_sl=", "ports/1/state=", "ports/1/lid",
	"ports/1/gids/0", "ports/1/gids/1023=", "ports/1/gid_attrs/types/0", "ports/1/gid_attrs/types/1023=",
	"ports/1/gid_attrs/ndevs/0", "ports/1/gid_attrs/ndevs/1023=", "ports/1/pkeys/0=",
	"ports/1/hw_counters/ack_deferred", "ports/1/hw_counters/completer_retry_err", "ports/1/hw_counters/duplicate_request",
	"ports/1/hw_counters/lifespan", "ports/1/hw_counters/link_downed", "ports/1/hw_counters/out_of_seq_request",
	"ports/1/hw_counters/rcvd_pkts", "ports/1/hw_counters/rcvd_rnr_err", "ports/1/hw_counters/rcvd_seq_err",
	"ports/1/hw_counters/rdma_recvs", "ports/1/hw_counters/rdma_sends", "ports/1/hw_counters/retry_exceeded_err",
	"ports/1/hw_counters/retry_rnr_exceeded_err", "ports/1/hw_counters/send_err", "ports/1/hw_counters/send_rnr_err",
	"ports/1/hw_counters/sent_pkts",
}

// otherNames begin what is not compared: links, ib_cm's counts, and what the
// emulator's devices have of their own.
var otherNames = []string{"subsystem", "device", "ports/1/cm_", "ports/1/qp/", "ports/1/hw_counters/", "ports/1/hw_counters_now"}

var moduleTests = []test{
	{"module/references", func(r *rig) {
		core, driver := r.sys.references(0)
		say := func(what string) {
			c, d := r.sys.references(0)
			r.say("%s: ib_uverbs has more: %t; the driver %+d", what, c > core, d-driver)
			core, driver = c, d
		}
		w, async := r.raw()
		say("a context")
		_, ch := w.channel()
		say("a channel")
		r.result("closing the device file", w.f.Close())
		say("the device file is closed")
		for _, f := range []kshim.File{ch, async} {
			r.must(f.Close())
			c, _ := r.sys.references(0)
			r.say("an event file is closed: ib_uverbs %+d", c-core)
			core = c
		}
	}},
	{"module/in-use", func(r *rig) {
		w, async := r.raw()
		r.say("unloading the driver is refused: %t", r.sys.unload(0, true) != nil)
		r.say("unloading ib_uverbs is refused: %t", r.sys.unload(0, false) != nil)
		r.must(w.f.Close())
		r.say("unloading ib_uverbs is refused: %t", r.sys.unload(0, false) != nil)
		r.must(async.Close())
	}},
	{"module/peer-dies", func(r *rig) {
		// The first WRITE is answered within half a second.
		a, b := r.ends(func(c *config) { c.timeout, c.retry = 16, 1 })
		// b's process is one that can die by itself.
		k, exit := r.sys.process(1)
		r.Cleanup(exit)
		ctx := must.Get(verbs.Open(k, r.sys.device[1]))(r)
		b = r.newEnd("b", ctx, b.config)
		r.connect(a, b)
		a.complete(a.rdma(abi.WRRDMAWrite, 0, 4096, b, 0))
		if r.sys.kill != nil {
			r.must(r.sys.kill(1, k))
		} else {
			r.must(ctx.Close())
		}
		seen := bytes.Clone(b.buf)
		a.complete(a.rdma(abi.WRRDMAWrite, 4096, 4096, b, 0), a.rdma(abi.WRRDMARead, 0, 64, b, 0))
		a.sayStateOnce(abi.QPSErr)
		r.say("the memory of the dead is untouched: %t", bytes.Equal(seen, b.buf))
		if r.sys.kill != nil {
			_ = ctx.Close() // no caller needs the error
		}
	}},
	{"module/sysfs", func(r *rig) {
		k := r.process(0)
		root := "/sys/class/infiniband/" + r.sys.device[0]
		known := map[string]bool{}
		for _, name := range sysfsNames {
			name, text := strings.CutSuffix(name, "=")
			known[name] = true
			got, err := readAttribute(k, path.Join(root, name))
			if text && err == nil {
				r.say("%s: %q", name, got)
			} else {
				r.result(name, err)
			}
		}
		for _, name := range walk(k, root, "") {
			if !known[name] {
				r.say("%s is there, too", name)
			}
		}
	}},
	{"event/order", func(r *rig) {
		qp, scq, rcq, ch := r.watched()
		for range 2 {
			scq.arm(false)
			qp.write(scq)
		}
		rcq.arm(false)
		qp.message(0)
		rcq.take(1)
		scq.take(1)
		scq.arm(false)
		qp.write(scq)
		for range 4 {
			r.sayEvent(ch)
		}
		r.sayNoEvent(ch)
	}},
}

// walk lists the attributes below a directory that have to be compared.
func walk(k kshim.Kernel, root, at string) (found []string) {
	for _, other := range otherNames {
		if strings.HasPrefix(at, other) {
			return nil
		}
	}
	if dir, last := path.Split(at); dir != "" {
		if n, err := strconv.Atoi(last); err == nil && n > 0 && n < 1023 && !strings.HasSuffix(dir, "ports/") {
			return nil
		}
	}
	names, err := k.ReadDir(path.Join(root, at))
	if err != nil {
		return []string{at}
	}
	for _, name := range names {
		found = append(found, walk(k, root, path.Join(at, name))...)
	}
	return found
}

// readAttribute gives an attribute's text without its newline.
func readAttribute(k kshim.Kernel, name string) (string, error) {
	f, err := k.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b := make([]byte, 4096)
	n, err := f.Read(context.Background(), b)
	return strings.TrimSuffix(string(b[:n]), "\n"), err
}
