#!/bin/sh
# cmd/bonsai/dist/package.sh VERSION [ARCH [FOLDER]]: makes bonsai's .deb and .rpm of that version, for amd64
# or arm64, in the folder. It takes Go, and nfpm, which go run fetches where it is not installed.
set -eu
VERSION=$1 ARCH=${2:-$(go env GOARCH)} out=$(realpath "${3:-.}")
cd "$(dirname "$0")/../../.."
BUILD=$(mktemp -d)
trap 'rm -rf "$BUILD"' EXIT
export VERSION ARCH BUILD
go build -o "$BUILD/native" ./cmd/bonsai
"$BUILD/native" manual | gzip -9n >"$BUILD/bonsai.8.gz"
"$BUILD/native" example >"$BUILD/bonsai.example.yaml"
CGO_ENABLED=0 GOOS=linux GOARCH=$ARCH go build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o "$BUILD/bonsai" ./cmd/bonsai
nfpm=nfpm
command -v nfpm >/dev/null || nfpm="go run github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.48.0"
for form in deb rpm; do
	$nfpm package --config cmd/bonsai/dist/nfpm.yaml --packager $form --target "$out"
done
