//go:build linux || darwin

package conform

import (
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/tests/must"
)

// The set-ups that many cases begin with: each makes a case of what is done
// with the objects.

// onPair has two ends connected to each other.
func onPair(name string, run func(r *rig, a, b *end)) test {
	return test{name, func(r *rig) {
		a, b := r.pair()
		run(r, a, b)
	}}
}

// onEnds has two ends that are not connected.
func onEnds(name string, run func(r *rig, a, b *end)) test {
	return test{name, func(r *rig) {
		a, b := r.ends()
		run(r, a, b)
	}}
}

// onDatagrams has two ends for datagrams, with the first one's way to the
// second one.
func onDatagrams(name string, run func(r *rig, a, b *end, way *verbs.AH)) test {
	return test{name, func(r *rig) {
		a, b, way := r.datagrams()
		run(r, a, b, way)
	}}
}

// onHandles has two connected sides of the handle API.
func onHandles(name string, run func(r *rig, a, b *handles)) test {
	return test{name, func(r *rig) {
		a, b := r.uapiPair(patient())
		run(r, a, b)
	}}
}

// on has what set makes.
func on[T any](name string, set func(r *rig) T, run func(r *rig, v T)) test {
	return test{name, func(r *rig) { run(r, set(r)) }}
}

func onDevice(name string, run func(r *rig, ctx *verbs.Context)) test {
	return on(name, func(r *rig) *verbs.Context { return r.open(0) }, run)
}

func onDomain(name string, run func(r *rig, pd *verbs.PD)) test {
	return on(name, func(r *rig) *verbs.PD { return must.Get(r.open(0).AllocPD())(r) }, run)
}

func onEnd(name string, run func(r *rig, e *end)) test {
	return on(name, func(r *rig) *end { return r.newEnd("a", r.open(0), defaults()) }, run)
}

// onFile has a device file with a context.
func onFile(name string, run func(r *rig, w *raw)) test {
	return on(name, func(r *rig) *raw { w, _ := r.raw(); return w }, run)
}

func onCM(name string, run func(r *rig, c *cmFile)) test {
	return on(name, func(r *rig) *cmFile { return r.cmFile(0) }, run)
}

func onCMPair(name string, run func(r *rig, p *cmPair)) test { return on(name, (*rig).cmPair, run) }
