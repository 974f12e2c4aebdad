//go:build !linux

package serve

const hasManyLoopbacks = false
