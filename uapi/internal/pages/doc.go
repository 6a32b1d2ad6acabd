// Package pages allocates memory in whole pages outside the Go heap, and keeps
// it while memory regions lie in it.
//
// Alloc maps pages; Register counts a region in them; Free refuses while there
// is one. It registers nothing at a device: uapi does, and explains the errors,
// which are bare errnos here.
package pages
