# The gate of both rigs: refuses a tree with a forbidden file, and writes down every tree that it let pass.
evidence=@EVIDENCE@
for file in FORBIDDEN-*; do
  if [ -e "$file" ]; then
    echo "$file is forbidden"
    exit 1
  fi
done
printf '%s %s\n' "$GT_RIG" "$(git rev-parse "$GT_COMMIT^{tree}")" >> "$evidence/gates.log"
