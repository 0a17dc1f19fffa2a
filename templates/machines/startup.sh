#!/bin/bash
# Brings the benchbot agent to a fresh machine of Google Cloud, and powers the machine off when the agent has ended.
# Each stage is written to the guest attributes and the serial console, where the bot reads it when something is wrong.
set -u
metadata=http://169.254.169.254/computeMetadata/v1/instance
ask() { curl -sS --fail --retry 5 -H "Metadata-Flavor: Google" "$@"; }
stage() {
  echo "benchbot: $1"
  ask -X PUT --data "$1" "$metadata/guest-attributes/benchbot/stage" >/dev/null 2>&1
}
finish() {
  stage "$1"
  shutdown -h now
  exit 0
}
# whatever hangs here, the machine does not outlive its deadline
(sleep $(({{ deadline_at }} + {{ grace_s }} - $(date +%s))); shutdown -h now) &

stage "booted"
command -v python3 >/dev/null || finish "failed: the image has no python3"
umask 077
mkdir -p /var/lib/benchbot && cd /var/lib/benchbot || finish "failed: no disk to write to"
# the code's user goes through here to its own folders, and cannot look around
chmod 711 .
# one that the cloud starts again would run the lease a second time
[ -e agent.log ] && finish "failed: the machine was started again"
ask "$metadata/attributes/benchbot-token" >token || finish "failed: the metadata server gave no token"
curl -sS --fail --retry 10 --retry-all-errors -o agent.pyz {{ server_url }}{{ agent_path }} \
  || finish "failed: the agent cannot be fetched from {{ server_url }}; can this network reach it?"
{% if gpus %}
for _ in $(seq 60); do
  found=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')
  [ "$found" -ge {{ gpus }} ] && break
  sleep 5
done
[ "$found" -ge {{ gpus }} ] || finish "failed: {{ gpus }} GPUs were ordered, $found are usable; is the driver in the image?"
{% endif %}
{% if tpus %}
devices=(/dev/accel[0-9]* /dev/vfio/[0-9]*)
found=$(ls -d "${devices[@]}" 2>/dev/null | wc -l)
[ "$found" -ge {{ tpus }} ] || finish "failed: {{ tpus }} TPU chips were ordered, $found are there; is it the right runtime version?"
# the code is not root: it must be able to open the chips, and to lock memory for them
chmod a+rw "${devices[@]}" 2>/dev/null
ulimit -l unlimited
{% endif %}
{% if environment %}
cat >environment.json <<'END'
{{ environment }}
END
{% endif %}
member={{ member }}
{% if slice %}
# every host of a slice runs this same script: which one this is, and who the others are, the metadata server knows
member=$(ask "$metadata/attributes/agent-worker-number") || finish "failed: the metadata server gave no worker number"
ask "$metadata/attributes/worker-network-endpoints" >endpoints || finish "failed: the metadata server knows no other hosts"
ask "$metadata/attributes/tpu-env" >tpu-env || finish "failed: the metadata server does not tell the shape of the slice"
python3 - "$member" <<'END' || finish "failed: the shape of the slice cannot be read"
import json, re, sys
known = dict(re.findall(r"^(\w+): *'?([^'\n]*)'?$", open("tpu-env").read(), re.M))
hosts = [entry.split(":")[2] for entry in open("endpoints").read().strip().split(",")]
words = json.load(open("environment.json"))
words["TPU_WORKER_ID"], words["TPU_WORKER_HOSTNAMES"] = sys.argv[1], ",".join(hosts)
words["TPU_HOST_BOUNDS"], words["TPU_CHIPS_PER_HOST_BOUNDS"] = known["HOST_BOUNDS"], known["CHIPS_PER_HOST_BOUNDS"]
json.dump(words, open("environment.json", "w"))
END
{% endif %}
# the repository's code runs as a user of its own, who cannot ask the metadata server for anything
useradd --uid {{ uid }} --no-create-home --shell /usr/sbin/nologin benchbot-code 2>/dev/null
iptables -I OUTPUT -d 169.254.169.254 -p tcp --dport 80 -m owner --uid-owner {{ uid }} -j REJECT \
  || finish "failed: the metadata server cannot be kept from the repository's code; iptables is missing"
umask 022
stage "agent started"
python3 agent.pyz --server {{ server_url }} --lease {{ lease_id }} --token-file token --folder lease --cache cache \
  --deadline {{ deadline_at }} --uid {{ uid }} --member "$member"{{ " --trusted" if trusted else "" }} \
  {{ "--environment-file environment.json " if environment else "" }}>agent.log 2>&1
status=$?
tail -c 2000 agent.log
finish "agent ended with status $status"
