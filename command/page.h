/* command/page.h - what a drawing's page does by itself: its style and its script.
 *
 *     wheel: zoom where the pointer is       drag: move        search: boxes that have the words;
 *     hover: a box is told of, with its C    click: it stays   Enter: the next one, in the middle
 *
 * Read before: draw.c. */
#ifndef JOT_PAGE_H
#define JOT_PAGE_H

static const char page_style[] =
    "html,body{margin:0;height:100%;font:13px sans-serif}"
    "body{display:grid;grid-template:auto 1fr/1fr 42em}"
    "#bar{grid-column:1/3;padding:6px 10px;background:#eee;border-bottom:1px solid #bbb}"
    "#view{overflow:hidden;position:relative;cursor:grab}"
    "#view svg{position:absolute;left:0;top:0;width:100%;height:100%}"
    "#detail{margin:0;padding:10px;overflow:auto;border-left:1px solid #bbb;font-size:12px}"
    "button.on{background:#9bd}";

static const char page_script[] =
    "const one=i=>document.getElementById(i),svgs={k:one('kernels'),g:one('graph')};\n"
    "const details=one('details').children;let now=svgs.k,box={},kept=false,hits=[],hit=-1;\n"
    "for(const s of Object.values(svgs)){const w=+s.getAttribute('width'),"
    "h=+s.getAttribute('height');box[s.id]=[0,0,w,h];}\n"
    "function view(){now.setAttribute('viewBox',box[now.id].join(' '));}\n"
    "function show(k){for(const n in svgs){svgs[n].style.display=n==k?'':'none';"
    "one(n).className=n==k?'on':'';}now=svgs[k];view();search(false);}\n"
    "function at(e){const p=new DOMPoint(e.clientX,e.clientY)"
    ".matrixTransform(now.getScreenCTM().inverse());return[p.x,p.y];}\n"
    "function zoom(f,x,y){const b=box[now.id];b[0]=x-(x-b[0])*f;b[1]=y-(y-b[1])*f;b[2]*=f;b[3]*=f;"
    "view();}\n"
    "one('view').addEventListener('wheel',e=>{e.preventDefault();const[x,y]=at(e);"
    "zoom(e.deltaY>0?1.2:1/1.2,x,y);},{passive:false});\n"
    "let from=null;\n"
    "one('view').addEventListener('mousedown',e=>{from=at(e);});\n"
    "window.addEventListener('mouseup',()=>{from=null;});\n"
    "one('view').addEventListener('mousemove',e=>{if(!from)return;const[x,y]=at(e);"
    "box[now.id][0]+=from[0]-x;box[now.id][1]+=from[1]-y;view();});\n"
    "function tell(g){one('detail').textContent=details[+g.dataset.k].textContent;}\n"
    "for(const g of document.querySelectorAll('.b')){if(g.dataset.k===undefined)continue;\n"
    "g.addEventListener('mouseover',()=>{if(!kept)tell(g);});\n"
    "g.addEventListener('click',()=>{kept=true;tell(g);});}\n"
    "one('view').addEventListener('dblclick',()=>{kept=false;});\n"
    "function search(next){const q=one('q').value.toLowerCase();hits=[];\n"
    "for(const g of now.querySelectorAll('.b')){const d=g.dataset.k===undefined?'':"
    "details[+g.dataset.k].textContent;const y=q&&(g.textContent+' '+d).toLowerCase().includes(q);"
    "g.classList.toggle('hit',!!y);if(y)hits.push(g);}\n"
    "one('n').textContent=q?hits.length+' found':'';if(!next||!hits.length){hit=-1;return;}\n"
    "hit=(hit+1)%hits.length;const r=hits[hit].querySelector('rect'),b=box[now.id];\n"
    "b[0]=+r.getAttribute('x')+r.getAttribute('width')/2-b[2]/2;"
    "b[1]=+r.getAttribute('y')+r.getAttribute('height')/2-b[3]/2;view();tell(hits[hit]);}\n"
    "one('q').addEventListener('input',()=>search(false));\n"
    "one('q').addEventListener('keydown',e=>{if(e.key=='Enter')search(true);});\n"
    "one('k').onclick=()=>show('k');one('g').onclick=()=>show('g');show('k');\n";

#endif
