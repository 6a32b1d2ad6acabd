package emu

// Memory is announced user memory as a driver sees it: bytes that stay where
// they are while the region is registered. The process that owns them may
// change or even unmap them at any time.
type Memory []byte
