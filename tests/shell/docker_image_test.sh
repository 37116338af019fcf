#!/usr/bin/env bash
# docker_image_test.sh SCRIPT: what the script does where no daemon answers, and with a Docker that only pretends.
set -euo pipefail
script=$1

fail() {
  echo "failed: $*" >&2
  exit 1
}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# docker_that VERSION ANSWER: prints this server's version, and this where it runs an image.
docker_that() {
  cat > "$folder/docker" << END
#!/bin/sh
echo "\$@" >> "$folder/asked"
case \$1 in
  info) echo "$1" ;;
  run) echo "$2" ;;
esac
END
  chmod +x "$folder/docker"
}

export PATH=$folder:$PATH
docker_that "" ""
[[ $("$script") == *"skipped, no Docker daemon answers" ]] || fail "no daemon, but not skipped"
grep build "$folder/asked" > /dev/null && fail "built without a daemon"
docker_that 28.2.2 "Llama-3.1-8B on one H100"
[[ $("$script") == *"the demo answered in"* ]] || fail "the demo of a built image"
grep '^image rm' "$folder/asked" > /dev/null || fail "the image is left behind"
# The container is removed by the name it was started with: a time limit would end only the client.
container=$(sed -n 's/^run .*--name \([^ ]*\).*/\1/p' "$folder/asked")
[[ -n $container ]] || fail "the container has no name"
grep -x "rm --force $container" "$folder/asked" > /dev/null || fail "the container is left behind"
docker_that 28.2.2 "something else"
"$script" 2> "$folder/said" && fail "another answer than the demo's is taken"
grep 'did not print the expected answer' "$folder/said" > /dev/null || fail "why it failed is not said"
for seconds in soon 0; do
  status=0
  "$script" --seconds "$seconds" 2> "$folder/said" || status=$?
  [[ $status == 2 ]] || fail "--seconds $seconds is taken"
  grep 'expected a positive whole number' "$folder/said" > /dev/null || fail "what --seconds takes is not said"
done
