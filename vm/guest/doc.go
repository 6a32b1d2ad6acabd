// Package guest implements the helper that u-root's init starts inside a guest
// of package vm, and the protocol that it speaks with the host.
//
// It is not an init (u-root's mounts file systems and reaps orphans) and holds
// no policy: the host asks for every step beyond loading the drivers of its own
// port.
//
// Host and guest exchange frames (frame.go) over one virtio serial port, in
// order, so that everything sent before an answer has arrived before it. The
// guest says Hello; the host sends Setup (setup_linux.go: netdevs, addresses,
// rxe0 through netlinkmgr); then any number of Exec (exec_linux.go), Push and
// Pull (archive.go), one after the other, each answered by Done; then PowerOff.
// The kernel's log is sent along all the time (kmsg_linux.go). A port that the
// host closes ends the guest.
package guest
