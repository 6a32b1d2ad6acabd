// Package planted shows programs a kernel's files below /sys and /dev as real
// ones, in a directory that the user alone reaches.
//
// A program's call that names a path of the kernel comes here first, to Plant,
// and goes on to the file or directory that Plant answers: opening, listing,
// reading and stat are then Linux's own. The attributes are as they were when
// they were planted, and stay so below a directory that is open.
//
// It takes no calls from programs: package preload does, by a stub in them.
package planted
